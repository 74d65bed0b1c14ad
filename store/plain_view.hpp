// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/snapshot.hpp"
#include "store/disk.hpp"
#include "store/variant.hpp"

#include <string>
#include <vector>

namespace modeld::store {

/// Makes views/<org>/<name>/<commit>/ hold exactly the snapshot's files and the links of these
/// variants: built under `temporary`, then renamed or exchanged into place in one step. Hard links
/// to the blobs; relative symbolic links where the file system refuses those.
Result<void> build_plain_view(const Disk& disk, const Snapshot& snapshot,
                              const std::vector<Variant>& variants, const std::string& temporary);

/// Adds or replaces one variant's link.
Result<void> link_variant(const Disk& disk, const Variant& variant, const std::string& temporary);

/// Removes the link of a variant, and folders that are empty then.
Result<void> unlink_variant(const Disk& disk, const Variant& variant);

/// Whether every file of the snapshot is in its view, as the blob itself.
bool plain_view_complete(const Disk& disk, const Snapshot& snapshot);

/// Removes folders from `path` upwards, as long as they are empty, down to `stop` (which stays).
void remove_empty_folders(const Disk& disk, std::string path, const std::string& stop);

} // namespace modeld::store
