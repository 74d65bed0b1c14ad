// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/disk.hpp"
#include "store/records.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// A snapshot of 100,000 files with long paths stays below this.
inline constexpr std::uint64_t k_max_manifest = 256U << 20;

/// pins/<name>.json
std::string pin_to_json(const Pin& pin);
Result<Pin> pin_from_json(std::string_view text);

/// modeld.id
std::string marker_text(const std::string& id);

/// A folder, or a symbolic link to one: somebody may have moved a part to another disk.
bool leads_to_folder(const Disk& disk, const std::string& path, const FolderEntry& entry);

/// Files `depth` folders below `top`, sorted; paths are relative to the disk's root.
Result<std::vector<std::string>> list_manifests(const Disk& disk, const std::string& top,
                                                int depth);
/// Folders `depth` levels below `top`.
Result<std::vector<std::string>> list_folders(const Disk& disk, const std::string& top, int depth);
/// Every file and link below a folder, relative to it.
Result<std::vector<std::string>> list_tree(const Disk& disk, const std::string& folder);

/// The repository of layout::repo_folder().
Result<RepoId> repo_of_folder(const std::string& folder);

} // namespace modeld::store
