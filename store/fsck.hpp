// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/progress.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// One thing that is not as it should be. Ids are stable; the list is fsck_rules().
struct FsckFinding {
  std::string_view id;   ///< "FS-04"
  std::string path;      ///< below the root
  std::string message;   ///< what is wrong, with found and expected
  std::string remedy;    ///< what was or would be done; empty where nothing can be done here
  bool repaired = false; ///< the remedy was applied and worked
};

struct FsckRule {
  std::string_view id;
  std::string_view what;
};
/// Every kind of damage that is looked for, by ascending id.
std::vector<FsckRule> fsck_rules();

struct FsckOptions {
  bool repair = false;
  bool deep = false; ///< hash every blob, not only those whose size or time changed
};

struct FsckReport {
  std::vector<FsckFinding> findings;
  std::uint64_t blobs = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t variants = 0;

  bool clean() const { return findings.empty(); }
};

/// Compares files, manifests, views and rows in every direction. Safe beside running work: what
/// changes meanwhile is left alone. Repair never deletes bytes: what is wrong goes to quarantine/.
Result<FsckReport> fsck(Store& store, const FsckOptions& options, Progress* progress);

/// Before an index is given up for one made out of the records: records that are missing or cannot
/// be read are written again from its rows, and told as findings. Other rows and records stay as
/// they are.
Result<FsckReport> save_records(Store& store);

} // namespace modeld::store
