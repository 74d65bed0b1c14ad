// SPDX-License-Identifier: Apache-2.0
#include "daemon/size_text.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <span>

namespace modeld::daemon {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array k_bytes{
    Unit{"TiB", std::uint64_t{1} << 40},
    Unit{"GiB", std::uint64_t{1} << 30},
    Unit{"MiB", std::uint64_t{1} << 20},
    Unit{"KiB", std::uint64_t{1} << 10},
    Unit{"B", 1},
    Unit{"", 1},
};
constexpr std::array k_seconds{
    Unit{"d", 86'400},
    Unit{"h", 3600},
    Unit{"m", 60},
    Unit{"s", 1},
};

// The first unit that the text ends with wins: "MiB" stands before "B".
std::optional<std::uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    std::uint64_t number = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (ec != std::errc{} || end != text.data() + text.size()) return {};
    if (number > UINT64_MAX / unit.factor) return {};
    return number * unit.factor;
  }
  return {};
}

tl::unexpected<Error> refuse(std::string_view text, std::string_view what,
                             std::string_view allowed) {
  return fail(Errc::invalid_argument,
              fmt::format("reading {} '{}': write {}", what, text, allowed));
}

} // namespace

Result<std::uint64_t> parse_bytes(std::string_view text, std::string_view what) {
  if (const auto bytes = parse(text, k_bytes)) return *bytes;
  return refuse(text, what, "a number with KiB, MiB, GiB or TiB, as in 20GiB");
}

Result<std::uint64_t> parse_rate(std::string_view text, std::string_view what) {
  if (text == "none") return 0;
  if (text.ends_with("/s")) text.remove_suffix(2);
  const auto rate = parse(text, k_bytes);
  if (rate && *rate > 0) return *rate;
  return refuse(text, what, "bytes per second with KiB, MiB or GiB, as in 20MiB, or none");
}

Result<std::uint64_t> parse_seconds(std::string_view text, std::string_view what) {
  if (const auto seconds = parse(text, k_seconds)) return *seconds;
  return refuse(text, what, "a number with s, m, h or d, as in 30d");
}

} // namespace modeld::daemon
