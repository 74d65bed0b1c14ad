// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "store/records.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

struct CollectOptions {
  /// What nothing names any more goes after this many seconds, so that a pull between two steps
  /// keeps what it brought.
  std::int64_t grace = 24 * 3600;
  std::int64_t partial_age = 7 * 24 * 3600; ///< unfinished downloads that nobody continued
  /// Also snapshots and variants that nobody used for so many seconds.
  std::optional<std::int64_t> unused_for;
  std::optional<std::uint64_t> size_target; ///< bytes of blobs that may stay
  std::optional<std::uint64_t> free_target; ///< bytes that shall be free in the file system
  /// For the targets: variants go before snapshots, since those can build them again; or simply
  /// what was used longest ago.
  enum class Order { variants_first, least_recent } order = Order::variants_first;
  bool ignore_open_files = false; ///< go even where a process has the file open; it keeps its bytes
};

/// Why a thing stays or goes.
enum class Reason {
  // stays
  pinned,
  leased,
  job,    ///< an unfinished job brought it
  held,   ///< a request or a build uses it now
  open,   ///< a process has it open or mapped
  linked, ///< shown in another runtime's folder
  young,  ///< within the grace time
  listed, ///< part of something that stays
  wanted, ///< within the targets
  // goes
  unnamed, ///< nothing names it
  unused,  ///< not used for too long
  target,  ///< least recently used, to reach a target
  stale,   ///< an unfinished download that nobody continued
  stray,   ///< a file that the index does not know
};
std::string_view slug(Reason reason);
bool keeps(Reason reason);

struct CollectItem {
  enum class Kind { snapshot, variant, blob, partial, stray };
  Kind kind = Kind::blob;
  std::string name;                   ///< ref, file name, digest or path
  std::optional<Sha256Digest> digest; ///< blob or stray; key of a variant
  RepoId repo;                        ///< snapshot
  GitOid commit;                      ///< snapshot
  std::uint64_t bytes =
      0; ///< of the file itself; of a snapshot's or variant's blobs that go with it
  Reason reason = Reason::listed;
  std::string detail; ///< who: the pin's name, the process, the job, what shares it
  bool open = false;  ///< removed while open: not yet freed

  bool goes() const { return !keeps(reason); }
};
std::string_view slug(CollectItem::Kind kind);

struct CollectPlan {
  std::vector<CollectItem> items;
  std::uint64_t total = 0;     ///< bytes of blobs, partial files and strays
  std::uint64_t won = 0;       ///< bytes that go
  std::uint64_t not_freed = 0; ///< of these, open in some process
  std::uint64_t unseen = 0;    ///< processes that we may not look into
};

/// Decides, and changes nothing. Cost is linear in what the index holds.
Result<CollectPlan> plan_collection(Store& store, const CollectOptions& options);

/// Decides again and removes: rows first, then files. What came into use meanwhile stays, and the
/// answer says so. Runs beside pulls, builds and readers; on a full disk it frees the reserve
/// first.
Result<CollectPlan> collect(Store& store, const CollectOptions& options, Progress* progress);

/// Who has a blob of this snapshot (or its variants) open, leased or held; for a refusal of "rm".
Result<std::vector<std::string>> users_of(Store& store, const std::vector<Sha256Digest>& digests);

} // namespace modeld::store
