// SPDX-License-Identifier: Apache-2.0
#include "daemon/caller_token.hpp"

#include "fetch/environment.hpp"

namespace modeld::daemon {

Result<std::string> caller_token() {
  MODELD_ASSIGN(const auto found, fetch::find_token(fetch::ProcessEnvironment()));
  return found.token.reveal();
}

} // namespace modeld::daemon
