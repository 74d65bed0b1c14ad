// SPDX-License-Identifier: Apache-2.0
#include "daemon/setting_text.hpp"

#include "schema/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

namespace modeld::daemon {
namespace {

using Kind = Setting::Kind;

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array k_byte_units{
    Unit{"TiB", std::uint64_t{1} << 40},
    Unit{"GiB", std::uint64_t{1} << 30},
    Unit{"MiB", std::uint64_t{1} << 20},
    Unit{"KiB", std::uint64_t{1} << 10},
};
// "ms" stands before "m" and "s": the first unit that the text ends with wins.
constexpr std::array k_time_units{
    Unit{"ms", 1},
    Unit{"h", 3'600'000},
    Unit{"m", 60'000},
    Unit{"s", 1000},
};

std::span<const Unit> units_of(Kind kind) {
  if (kind == Kind::bytes) return k_byte_units;
  if (kind == Kind::duration) return k_time_units;
  return {};
}

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return number;
}

std::optional<std::uint64_t> parse_value(Kind kind, std::string_view text) {
  if (kind == Kind::mode) return parse_number(text, 8);
  for (const Unit& unit : units_of(kind)) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    const auto number = parse_number(text, 10);
    if (!number || *number > UINT64_MAX / unit.factor) return {};
    return *number * unit.factor;
  }
  if (kind == Kind::duration) return {}; // a duration without a unit is ambiguous
  return parse_number(text, 10);
}

// With the largest unit that divides it.
std::string with_unit(Kind kind, std::uint64_t value) {
  if (kind == Kind::mode) return fmt::format("{:04o}", value);
  std::string best = kind == Kind::duration ? fmt::format("{}ms", value) : fmt::format("{}", value);
  std::uint64_t factor = 1;
  for (const Unit& unit : units_of(kind)) {
    if (value == 0 || value % unit.factor != 0 || unit.factor < factor) continue;
    factor = unit.factor;
    best = fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return best;
}

Result<void> set_number(Config& config, const Setting& setting, std::uint64_t value,
                        std::string_view written) {
  if (value < setting.least || value > setting.most) {
    return fail(Errc::invalid_argument, fmt::format("'{}' is {}, allowed is {}", setting.name,
                                                    written, allowed_text(setting)));
  }
  if (const auto* number = std::get_if<std::uint64_t* (*)(Config&)>(&setting.member)) {
    *(*number)(config) = value;
  } else if (const auto* time =
                 std::get_if<std::chrono::milliseconds* (*)(Config&)>(&setting.member)) {
    *(*time)(config) = std::chrono::milliseconds(value);
  }
  return {};
}

std::uint64_t number_of(Config& config, const Setting& setting) {
  if (const auto* number = std::get_if<std::uint64_t* (*)(Config&)>(&setting.member)) {
    return *(*number)(config);
  }
  return static_cast<std::uint64_t>(
      (*std::get<std::chrono::milliseconds* (*)(Config&)>(setting.member))(config)->count());
}

bool is_text(const Setting& setting) {
  return setting.kind == Kind::text || setting.kind == Kind::path;
}

} // namespace

std::string allowed_text(const Setting& setting) {
  if (setting.kind == Kind::path) return "a path";
  if (setting.kind == Kind::text) return "text";
  return fmt::format("{} to {}", with_unit(setting.kind, setting.least),
                     with_unit(setting.kind, setting.most));
}

Result<void> set_from_text(Config& config, const Setting& setting, std::string_view text) {
  if (is_text(setting)) {
    *(*std::get<std::string* (*)(Config&)>(setting.member))(config) = text;
    return {};
  }
  const auto value = parse_value(setting.kind, text);
  if (!value) {
    return fail(Errc::invalid_argument, fmt::format("'{}' is '{}', allowed is {}", setting.name,
                                                    text, allowed_text(setting)));
  }
  return set_number(config, setting, *value, text);
}

Result<void> set_from_number(Config& config, const Setting& setting, std::int64_t number) {
  const bool countable = setting.kind == Kind::count || setting.kind == Kind::bytes;
  if (number < 0 || !countable) {
    return fail(Errc::invalid_argument,
                fmt::format("'{}' is {}, allowed is {}{}", setting.name, number,
                            allowed_text(setting), countable ? "" : ", as text in quotes"));
  }
  return set_number(config, setting, static_cast<std::uint64_t>(number), fmt::format("{}", number));
}

std::string value_text(Config& config, const Setting& setting) {
  if (is_text(setting)) {
    std::string quoted;
    for (const char c : *(*std::get<std::string* (*)(Config&)>(setting.member))(config)) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return fmt::format("\"{}\"", quoted);
  }
  const std::string text = with_unit(setting.kind, number_of(config, setting));
  const bool plain =
      setting.kind != Kind::mode &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return plain ? text : fmt::format("\"{}\"", text);
}

std::string_view nearest_setting(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Setting& setting : all_settings()) {
    names.push_back(setting.name);
  }
  return nearest_name(name, names);
}

} // namespace modeld::daemon
