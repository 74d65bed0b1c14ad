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

/// Adds or replaces one link: views/<org>/<name>/<commit>/<path>.
Result<void> link_in_view(const Disk& disk, const RepoId& repo, const GitOid& commit,
                          const std::string& path, const Sha256Digest& blob,
                          const std::string& temporary);

/// The same for a variant's file.
Result<void> link_variant(const Disk& disk, const Variant& variant, const std::string& temporary);

/// Removes the link of a variant, and folders that are empty then.
Result<void> unlink_variant(const Disk& disk, const Variant& variant);

/// Whether every file of the snapshot is in its view, as the blob itself.
bool plain_view_complete(const Disk& disk, const Snapshot& snapshot);

bool variant_is_shown(const Disk& disk, const Variant& variant);

/// Whether it looks like a link that we made: to a blob, or a read-only name of one.
bool is_blob_link(const Disk& disk, const std::string& path);

/// Removes folders from `path` upwards, as long as they are empty, down to `stop` (which stays).
void remove_empty_folders(const Disk& disk, std::string path, const std::string& stop);

} // namespace modeld::store
