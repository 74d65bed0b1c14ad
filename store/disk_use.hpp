// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/store.hpp"

#include <cstdint>

namespace modeld::store {

/// Where a store's bytes are on the disk: allocated blocks, each file once whatever names it has,
/// so that the sum is what `du` says.
struct DiskUse {
  std::uint64_t listed = 0;     ///< files of snapshots
  std::uint64_t built = 0;      ///< files that are variants only
  std::uint64_t unnamed = 0;    ///< blobs that nothing names: a collection takes them
  std::uint64_t unfinished = 0; ///< tmp/: downloads to go on with
  std::uint64_t quarantine = 0; ///< damaged files
  std::uint64_t reserve = 0;    ///< space to free when the disk is full
  std::uint64_t records = 0;    ///< index, manifests, pieces, folders
  std::uint64_t total() const;
};

/// Looks at every file: a fraction of a second for 100,000 of them.
Result<DiskUse> measure_disk_use(Store& store);

} // namespace modeld::store
