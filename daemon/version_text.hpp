// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace modeld::daemon {

/// What `--version` prints: program, versions, the kernels in use.
std::string version_text(std::string_view program);

/// Name of the kernels in use: "avx512".
std::string kernel_text();

} // namespace modeld::daemon
