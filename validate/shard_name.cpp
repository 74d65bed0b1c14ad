// SPDX-License-Identifier: Apache-2.0
#include "validate/shard_name.hpp"

#include "validate/shard_index.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace modeld::validate {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::toupper(static_cast<unsigned char>(x)) ==
           std::toupper(static_cast<unsigned char>(y));
  });
}

/// CON, COM1 and the like name devices on Windows, with any extension.
bool is_device_name(std::string_view name) {
  const std::string_view stem = name.substr(0, name.find('.'));
  constexpr std::array<std::string_view, 4> k_plain{"CON", "PRN", "AUX", "NUL"};
  for (const std::string_view device : k_plain)
    if (equal_ignoring_case(stem, device)) return true;
  return stem.size() == 4 && stem[3] >= '1' && stem[3] <= '9' &&
         (equal_ignoring_case(stem.substr(0, 3), "COM") ||
          equal_ignoring_case(stem.substr(0, 3), "LPT"));
}

std::optional<std::uint32_t> five_digits(std::string_view text) {
  if (text.size() != 5) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return value;
}

} // namespace

std::optional<NumberedName> numbered_name(std::string_view name, std::string_view extension) {
  constexpr std::size_t k_tail = 15; // -NNNNN-of-MMMMM
  if (!name.ends_with(extension)) return std::nullopt;
  name.remove_suffix(extension.size());
  if (name.size() <= k_tail) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - k_tail);
  const auto number = five_digits(tail.substr(1, 5));
  const auto total = five_digits(tail.substr(10, 5));
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || !number || !total) return std::nullopt;
  return NumberedName{name.substr(0, name.size() - k_tail), *number, *total};
}

std::optional<std::string_view> shard_name_fault(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name == "." || name == "..") return "names a folder";
  for (const char c : name) {
    if (c == '/' || c == '\\') return "holds a path separator";
    if (c == ':') return "holds a colon";
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "holds a control character";
  }
  if (name.front() == '-') return "starts with a dash";
  if (name.front() == '.') return "starts with a dot";
  if (name.back() == '.' || name.back() == ' ') return "ends with a dot or a space";
  if (is_device_name(name)) return "is a device name on Windows";
  if (name.size() > 255) return "is longer than 255 bytes";
  return std::nullopt;
}

} // namespace modeld::validate
