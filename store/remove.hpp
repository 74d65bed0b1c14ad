// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/store.hpp"

#include <string>
#include <vector>

namespace modeld::store {

struct RemoveReport {
  std::vector<std::string> hidden; ///< links in other programs' folders that went with it
  std::vector<std::string> left;   ///< files there that somebody changed: left alone
  std::vector<std::string> users;  ///< who still uses its bytes, which stay until they end
};

/// What "rm" does: links that were made for the snapshot, its variants, the snapshot. Its bytes go
/// with the next collection. conflict while pinned, and, unless forced, while somebody has it open,
/// leased or held; that names who.
Result<RemoveReport> remove_model(Store& store, const RepoId& repo, const GitOid& commit,
                                  bool force);

} // namespace modeld::store
