// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstdint>
#include <string_view>

namespace modeld::daemon {

/// "10GiB", "512MiB", "1000": bytes. invalid_argument names `what` and the text.
Result<std::uint64_t> parse_bytes(std::string_view text, std::string_view what);
/// "20MiB": bytes per second, at least 1; "none": 0.
Result<std::uint64_t> parse_rate(std::string_view text, std::string_view what);
/// "30d", "12h", "15m", "60s": seconds.
Result<std::uint64_t> parse_seconds(std::string_view text, std::string_view what);

} // namespace modeld::daemon
