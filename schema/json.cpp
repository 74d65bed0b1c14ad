// SPDX-License-Identifier: Apache-2.0
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld {
namespace {

constexpr std::size_t k_max_depth = 64;

tl::unexpected<Error> member_error(std::string_view name, std::string_view expected) {
  return fail(Errc::malformed, fmt::format("reading member '{}': expected {}", name, expected));
}

} // namespace

Result<boost::json::value> parse_json(std::string_view text, std::string_view what) {
  boost::json::parse_options options;
  options.max_depth = k_max_depth;
  boost::json::stream_parser parser({}, options);
  boost::json::error_code ec;
  const std::size_t used = parser.write(text, ec);
  if (!ec) parser.finish(ec);
  if (ec) {
    return fail(Errc::malformed,
                fmt::format("parsing {}: {} at byte {}", what, ec.message(), used));
  }
  return parser.release();
}

Result<std::string> json_string(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return member_error(name, "a string");
  return std::string(value->get_string());
}

Result<std::uint64_t> json_uint(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  boost::json::error_code ec;
  if (value != nullptr && (value->is_int64() || value->is_uint64())) {
    const auto number = value->to_number<std::uint64_t>(ec);
    if (!ec) return number;
  }
  return member_error(name, "a whole number, not negative");
}

Result<const boost::json::array*> json_array(const boost::json::object& object,
                                             std::string_view name) {
  const auto* value = object.if_contains(name);
  if (value == nullptr || !value->is_array()) return member_error(name, "an array");
  return &value->get_array();
}

} // namespace modeld
