// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "store/disk.hpp"
#include "store/records.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace modeld::store {

/// A blob whose bytes are not what its name says, and everybody whom that concerns.
struct DamagedBlob {
  Sha256Digest digest;
  std::string cause;                  ///< "its SHA-256 is ...", "it has n bytes, expected m"
  std::vector<std::string> snapshots; ///< "org/name@commit: path"
  std::vector<Sha256Digest> variants; ///< keys
  std::vector<std::string> users;     ///< leases and processes that have it open now
  std::vector<std::string> shown;     ///< paths in other programs' folders that showed it
};

/// Whether size and time of the file are those of its row: a few microseconds.
bool looks_unchanged(Store& store, const Sha256Digest& digest);

/// What tells of a writer: size and time of a blob's file.
struct BlobStamp {
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;

  bool operator==(const BlobStamp&) const = default;
};
/// As the index notes it; nothing for a blob that is damaged, or in a shared store only.
std::optional<BlobStamp> stamp_of(Store& store, const Sha256Digest& digest);
/// One look at the disk, none at the index.
bool has_stamp(Store& store, const Sha256Digest& digest, const BlobStamp& stamp);

/// Before the next use: where size or time differ, the bytes are hashed again. Damage is
/// quarantined and answered with corrupt, which names those concerned.
Result<void> check_before_use(Store& store, const Sha256Digest& digest);

/// Moves the file to quarantine/, takes its names out of the views, marks row, snapshots and
/// variants: nothing serves them until an ingest of the same digest brings good bytes.
Result<DamagedBlob> quarantine(Store& store, const Sha256Digest& digest, std::string cause);

/// The same for a caller that holds State::manifests.
Result<DamagedBlob> quarantine_locked(Store& store, const Sha256Digest& digest, std::string cause);

/// Where a blob came from, by a snapshot that lists it, damaged or not.
struct BlobSource {
  RepoId repo;
  GitOid commit;
  ListedFile file;
};
Result<std::vector<BlobSource>> sources_of(Store& store, const Sha256Digest& digest);
/// Blobs of a snapshot and of what was built from it, damaged or not.
Result<std::set<Sha256Digest>> blobs_of(Store& store, const RepoId& repo, const GitOid& commit);

/// Blobs that are in quarantine or lost, and what needs them.
Result<std::vector<DamagedBlob>> list_damaged(Store& store);

struct ScrubOptions {
  std::uint64_t bytes_per_second = 0; ///< 0: as fast as the disk
  bool changed_only = false;          ///< only files whose size or time differ from their row
  std::vector<Sha256Digest> only;     ///< empty: all
};

struct ScrubReport {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
  std::vector<DamagedBlob> damaged;
};

/// Reads blobs again and compares them with their names. Meant for an idle thread; paced; stops on
/// cancel with what was found so far quarantined.
Result<ScrubReport> scrub(Store& store, const ScrubOptions& options, Progress* progress);

/// SHA-256 of a file that may change under us. Reading goes around the page cache's memory of it.
Result<Sha256Digest> hash_file(const Disk& disk, const std::string& path,
                               std::uint64_t bytes_per_second, Progress* progress);

} // namespace modeld::store
