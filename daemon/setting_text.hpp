// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/config.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace modeld::daemon {

/// Sets from text: "64MiB", "30s", "0660", a path. invalid_argument with name, value and range.
Result<void> set_from_text(Config& config, const Setting& setting, std::string_view text);
/// Sets from a plain number: bytes, seconds, a count.
Result<void> set_from_number(Config& config, const Setting& setting, std::int64_t number);

/// "1KiB to 1MiB", "100ms to 1h", "text".
std::string allowed_text(const Setting& setting);
/// The value as TOML.
std::string value_text(Config& config, const Setting& setting);
/// The known name with the least edits from this one.
std::string_view nearest_setting(std::string_view name);

} // namespace modeld::daemon
