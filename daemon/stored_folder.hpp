// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/command.hpp"
#include "schema/result.hpp"

#include <string>

namespace modeld::daemon {

struct StoredFolder {
  std::string path;
  std::string model; ///< the repository's name, where it is a snapshot; its folder is a commit's
};

/// What a PATH argument means: the file or folder of that name; where there is none, the folder of
/// the snapshot that the daemon has under it as a ref. not_found where it is neither.
Result<StoredFolder> path_or_stored(CommandContext& context, const std::string& argument);

} // namespace modeld::daemon
