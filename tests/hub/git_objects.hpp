// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// One line of a git tree: a file (mode 100644) or a folder (mode 40000).
struct TreeLine {
  std::string name;
  bool folder = false;
  GitOid oid;
};

/// Id of a git tree with these lines, in any order: SHA-1 of "tree <size>", a NUL and the lines
/// sorted as git does it (a folder sorts as if its name ended in '/').
GitOid git_tree_id(std::vector<TreeLine> lines);

/// Id of a commit of this tree without parents, by a fixed author at a fixed time: the same files
/// give the same commit on every machine.
GitOid git_commit_id(const GitOid& tree);

/// The three lines that git keeps in the place of an LFS object.
std::string lfs_pointer(const Sha256Digest& sha256, std::size_t size);

} // namespace modeld::test
