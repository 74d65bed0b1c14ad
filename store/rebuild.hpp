// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/disk.hpp"
#include "store/index.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace modeld::store {

/// A blob's row by its file alone. The bytes are read only where the git id is due (small files),
/// and then compared with the name: corrupt where they differ.
Result<BlobRow> read_blob_row(const Disk& disk, const Sha256Digest& digest);

/// Makes a new index out of blobs and manifests, puts it in the old one's place and keeps that as
/// index.sqlite.old. Jobs, leases and times of use are lost; every other row is as it was. Blobs
/// that a manifest names and that are gone or wrong become damaged rows. The caller holds the lock.
Result<void> rebuild_index(const Disk& disk);

/// What came of a rebuild while the store is open.
struct RebuildReport {
  std::uint64_t rows = 0; ///< of the new index, without work
  /// Rows that the old index had and the new one has not, and the other way round, by table. Empty:
  /// the two were equal row for row.
  std::vector<Index::Difference> differences;
  std::string unread; ///< why the old index could not be compared; empty where it was
};

/// The same on a running store: everything waits meanwhile. Jobs, leases and times of use are taken
/// over from the old index where it can be read.
Result<RebuildReport> rebuild_open_index(Store& store);

} // namespace modeld::store
