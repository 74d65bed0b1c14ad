// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Makes the files of the test catalogue (validation.md 6) out of their notation.

namespace modeld::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <class T>
std::string le(T value) {
  std::string out(sizeof(T), '\0');
  auto bits = static_cast<std::uint64_t>(value);
  for (char& c : out) {
    c = static_cast<char>(bits & 0xFF);
    bits >>= 8;
  }
  return out;
}

inline std::string zeros(std::size_t count) {
  return std::string(count, '\0');
}

/// ST(h,d): length, header, data.
inline std::string st(std::string_view header, std::string_view data) {
  return le(std::uint64_t{header.size()}) + std::string(header) + std::string(data);
}

/// e(n,t,s,b,f): one member of a header.
inline std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                         std::string_view begin, std::string_view end) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) +
         "\",\"shape\":" + std::string(shape) + ",\"data_offsets\":[" + std::string(begin) + "," +
         std::string(end) + "]}";
}

inline std::string object(std::initializer_list<std::string> members) {
  std::string out = "{";
  for (const std::string& member : members) {
    if (out.size() > 1) out += ",";
    out += member;
  }
  return out + "}";
}

/// All findings in one line, for messages of failed checks.
std::string list(const validate::Report& report);

} // namespace modeld::test
