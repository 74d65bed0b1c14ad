// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace modeld::daemon {

/// What `--version` prints: program, versions, the kernels in use.
std::string version_text(std::string_view program);

} // namespace modeld::daemon
