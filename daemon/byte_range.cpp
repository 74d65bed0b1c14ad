// SPDX-License-Identifier: Apache-2.0
#include "daemon/byte_range.hpp"

#include <algorithm>
#include <charconv>

namespace modeld::daemon {
namespace {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size()) return {};
  if (ec == std::errc::result_out_of_range) return UINT64_MAX;
  if (ec != std::errc{}) return {};
  return number;
}

} // namespace

ByteRange parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view k_unit = "bytes=";
  const ByteRange whole{ByteRange::Kind::whole, 0, size};
  const ByteRange none{ByteRange::Kind::unsatisfiable, 0, 0};
  if (!header.starts_with(k_unit)) return whole;
  header.remove_prefix(k_unit.size());
  const auto dash = header.find('-');
  if (dash == std::string_view::npos) return whole;
  const auto last = parse_number(header.substr(dash + 1));
  if (dash == 0) { // the last N bytes
    if (!last) return whole;
    if (*last == 0 || size == 0) return none;
    const std::uint64_t take = std::min(*last, size);
    return {ByteRange::Kind::part, size - take, take};
  }
  const auto first = parse_number(header.substr(0, dash));
  const bool open = dash + 1 == header.size();
  if (!first || (!last && !open) || (last && *last < *first)) return whole;
  if (*first >= size) return none;
  const std::uint64_t end = last ? std::min(*last, size - 1) : size - 1;
  return {ByteRange::Kind::part, *first, end - *first + 1};
}

} // namespace modeld::daemon
