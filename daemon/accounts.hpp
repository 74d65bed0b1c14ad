// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

// Names of users and groups, as the system's database has them.

namespace modeld::daemon {

/// A name or a number; invalid_argument for a name that nobody has.
Result<std::uint32_t> user_id(std::string_view text);
Result<std::uint32_t> group_id(std::string_view text);
/// Empty where there is none.
std::string user_name(std::uint32_t uid);
/// "1001 ('alice')", or the number alone.
std::string named_user(std::uint32_t uid);

} // namespace modeld::daemon
