// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace modeld {

/// Strict JSON within limits (depth 64); the error says where.
Result<boost::json::value> parse_json(std::string_view text, std::string_view what);

/// Members of an object by name and type; malformed with the member's name where it is absent or
/// of another type.
Result<std::string> json_string(const boost::json::object& object, std::string_view name);
Result<std::uint64_t> json_uint(const boost::json::object& object, std::string_view name);
Result<const boost::json::array*> json_array(const boost::json::object& object,
                                             std::string_view name);

} // namespace modeld
