// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace modeld::test {

/// Bytes that no two places of which are alike, the same on every run.
inline std::string random_bytes(std::size_t size, std::uint32_t seed = 1) {
  std::string text(size, '\0');
  for (char& c : text) {
    seed = seed * 1664525u + 1013904223u;
    c = static_cast<char>(seed >> 24);
  }
  return text;
}

} // namespace modeld::test
