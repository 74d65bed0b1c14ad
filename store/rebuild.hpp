// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/disk.hpp"
#include "store/index.hpp"

namespace modeld::store {

/// A blob's row by its file alone. The bytes are read only where the git id is due (small files),
/// and then compared with the name: corrupt where they differ.
Result<BlobRow> read_blob_row(const Disk& disk, const Sha256Digest& digest);

/// Makes a new index out of blobs and manifests, puts it in the old one's place and keeps that as
/// index.sqlite.old. Jobs, leases and times of use are lost; every other row is as it was. Blobs
/// that a manifest names and that are gone or wrong become damaged rows. The caller holds the lock.
Result<void> rebuild_index(const Disk& disk);

} // namespace modeld::store
