// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace modeld::daemon {

/// Makes an option with a list take one word each time that it is given. Left to itself it would
/// swallow every word behind it, the names of files too.
inline void repeated(CLI::Option* option) {
  option->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
}

} // namespace modeld::daemon
