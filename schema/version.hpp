// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace modeld {

/// Of the programs.
inline constexpr std::string_view k_version = "0.1.0";
/// Part of every variant's key: raised whenever a build of an existing key would change a byte.
inline constexpr std::string_view k_converter_version = "1";
/// What our files are compared with.
inline constexpr std::string_view k_reference = "llama.cpp v0.4.0";

} // namespace modeld
