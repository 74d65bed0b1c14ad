// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/yaml_scalar.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <regex>

// The patterns are those of YAML 1.1's type repository (yaml.org/type) as PyYAML has them; 1.2,
// which yaml-cpp follows, would read `no`, 010 and 1:30 as something else.

namespace modeld::quantize {
namespace {

// A longer scalar is text whatever it looks like, and std::regex recurses for each character.
constexpr std::size_t k_max_typed_length = 256;

constexpr std::array<std::string_view, 9> k_true{"yes",  "Yes", "YES", "true", "True",
                                                 "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 9> k_false{"no",    "No",  "NO",  "false", "False",
                                                  "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> k_null{"", "~", "null", "Null", "NULL"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view text) {
  return !text.empty() && std::find(words.begin(), words.end(), text) != words.end();
}

bool is_whole(const std::string& text) {
  static const std::regex k_pattern(R"([-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*))"
                                    R"(|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)");
  return std::regex_match(text, k_pattern);
}

bool is_real(const std::string& text) {
  static const std::regex k_pattern(
      R"([-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)"
      R"(|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))");
  return std::regex_match(text, k_pattern);
}

bool is_timestamp(const std::string& text) {
  static const std::regex k_pattern(
      R"([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?)"
      R"(:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9]{2})?))?)");
  return std::regex_match(text, k_pattern);
}

boost::json::value whole(std::string text) {
  std::erase(text, '_');
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.erase(0, 1);
  int base = 10;
  std::size_t skip = 0;
  if (text.starts_with("0b")) {
    base = 2, skip = 2;
  } else if (text.starts_with("0x")) {
    base = 16, skip = 2;
  } else if (text.size() > 1 && text.starts_with('0')) {
    base = 8, skip = 1;
  }
  std::uint64_t value = 0;
  const char* at = text.data() + skip;
  const char* const end = text.data() + text.size();
  // Base 60: 1:30 is 90.
  while (at < end) {
    std::uint64_t digits = 0;
    const auto [next, error] = std::from_chars(at, end, digits, base);
    if (error != std::errc{}) return std::numeric_limits<std::uint64_t>::max();
    value = value * 60 + digits;
    at = next < end ? next + 1 : next;
  }
  if (!negative) return value;
  return static_cast<std::int64_t>(0 - value);
}

boost::json::value real(std::string text) {
  std::erase(text, '_');
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.erase(0, 1);
  double value = 0;
  if (text == ".inf" || text == ".Inf" || text == ".INF") {
    value = std::numeric_limits<double>::infinity();
  } else if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    while (at < end) {
      double digits = 0;
      const auto [next, error] = std::from_chars(at, end, digits);
      if (error == std::errc::invalid_argument) break;
      value = value * 60 + digits;
      at = next < end ? next + 1 : next;
    }
  }
  return negative ? -value : value;
}

} // namespace

boost::json::value resolve_plain_scalar(const std::string& text) {
  if (text.empty() || is_one_of(k_null, text)) return nullptr;
  if (is_one_of(k_true, text)) return true;
  if (is_one_of(k_false, text)) return false;
  // Only these can begin a number or a date.
  if (text.size() > k_max_typed_length ||
      std::string_view("0123456789+-.").find(text.front()) == std::string_view::npos) {
    return boost::json::string(text);
  }
  if (is_whole(text)) return whole(text);
  if (is_real(text)) return real(text);
  if (is_timestamp(text)) return boost::json::object{{"timestamp", text}};
  return boost::json::string(text);
}

} // namespace modeld::quantize
