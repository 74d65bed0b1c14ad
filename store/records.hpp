// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"
#include "schema/model_ref.hpp"
#include "schema/snapshot.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the index knows besides blobs and snapshots. Times are seconds since 1970.

namespace modeld::store {

using UnixTime = std::int64_t;
UnixTime now();

/// A name of a repository that moves: what the Hub said, and when.
struct Ref {
  RepoId repo;          ///< as asked for
  std::string revision; ///< branch or tag, or refs/pr/N
  GitOid commit;
  RepoId canonical; ///< where the Hub redirected to; equals repo otherwise. Snapshots are listed
                    ///< under this name
  UnixTime checked = 0;

  bool operator==(const Ref&) const = default;
};

struct SnapshotInfo {
  RepoId repo;
  GitOid commit;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  UnixTime added = 0;
  UnixTime used = 0;              ///< last use of any of its blobs; 0 if never
  bool damaged = false;           ///< a blob is quarantined: not served until repaired
  std::uint64_t absent = 0;       ///< files that the Hub lists and are not here
  std::uint64_t absent_bytes = 0; ///< of those

  bool operator==(const SnapshotInfo&) const = default;
};

enum class JobState { queued, running, done, failed, cancelled };
std::string_view slug(JobState state);
std::optional<JobState> job_state_from_slug(std::string_view text);
/// done, failed, cancelled: will not change again.
bool is_final(JobState state);

/// Durable part of a job. The daemon gives it meaning.
struct JobRecord {
  std::string id;
  std::string kind; ///< "pull", "variant", "gc", ...
  JobState state = JobState::queued;
  std::string phase;
  std::string request;     ///< JSON, without credentials
  std::string result;      ///< JSON; empty until done
  std::string error;       ///< JSON problem; empty unless failed
  std::uint64_t done = 0;  ///< bytes
  std::uint64_t total = 0; ///< bytes; 0 while unknown
  std::uint32_t uid = 0;   ///< who asked
  UnixTime created = 0;
  UnixTime updated = 0;

  bool operator==(const JobRecord&) const = default;
};

/// A name that keeps a snapshot, and the variants asked for with it, from collection.
struct Pin {
  std::string name; ///< 1 to 128 of [A-Za-z0-9_.-], starting with a letter, a digit or _
  RepoId repo;
  GitOid commit;
  std::vector<std::string> recipes; ///< canonical texts; sorted, each once
  std::uint32_t uid = 0;
  UnixTime created = 0;

  bool operator==(const Pin&) const = default;
};

/// Who uses a blob. Exactly one kind.
struct LeaseHolder {
  enum class Kind { connection, process, deadline };
  Kind kind = Kind::connection;
  std::uint64_t connection = 0; ///< the daemon's number of it; such a lease ends with the daemon
  std::int32_t pid = 0;         ///< a process; ends with it, survives a restart of the daemon
  std::uint64_t start_ticks =
      0;                 ///< start time of the process (/proc/PID/stat field 22); 0: filled in
  UnixTime deadline = 0; ///< ends at this time, survives a restart

  bool operator==(const LeaseHolder&) const = default;
};

struct Lease {
  std::string id;
  Sha256Digest blob;
  LeaseHolder holder;
  std::uint32_t uid = 0;
  UnixTime created = 0;
  std::string note; ///< what for, in messages: the command's name

  bool operator==(const Lease&) const = default;
};

/// A store below ours that is only read.
struct SharedStatus {
  std::filesystem::path path;
  bool there = false; ///< mounted, with the marker that it had
  std::uint64_t snapshots = 0;
};

} // namespace modeld::store
