// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/hub_client.hpp"
#include "schema/result.hpp"
#include "schema/snapshot.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace modeld::fetch {

/// The name in an answer of whoami-v2.
Result<std::string> parse_user(std::string_view json);

/// Repository info (hub-protocol.md 1.3): commit, name and access.
Result<Resolved> parse_repo_info(std::string_view json);

/// One page of a tree (hub-protocol.md 1.4): appends its files to `files`, leaves folders out.
/// Refuses the whole listing for a name that attacks a file system (check_repo_path), a size or an
/// id that is not one. A redacted or unknown xetHash is ignored. The number of entries, folders
/// too.
Result<std::size_t> append_tree_page(std::string_view json, std::vector<ListedFile>& files);

/// Sorts by path and refuses a path that comes twice, or that is a file and a folder too.
Result<void> finish_listing(std::vector<ListedFile>& files);

} // namespace modeld::fetch
