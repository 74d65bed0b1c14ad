// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/reference/iq_grid.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace modeld::quantize {

/// What the points of an IqGrid stand for, by index: one byte for each element, in one word for
/// each point. Signs go on by arithmetic on the word: with_signs.
///
/// Built on first use, lives for ever, and is the same for all threads.
class PointValues {
public:
  static const PointValues& iq2_xxs(); ///< 8, 25, 43
  static const PointValues& iq2_xs();
  static const PointValues& iq2_s();
  static const PointValues& iq1();     ///< 128 + 8 level: see BlockIQ1S
  static const PointValues& iq3_xxs(); ///< 4, 12, ... 62; four elements in the low half
  static const PointValues& iq3_s();   ///< 1, 3, ... 15

  std::uint64_t operator[](std::size_t index) const { return words_[index]; }

private:
  PointValues(const reference::IqGrid& grid, std::span<const std::uint8_t> values);

  std::vector<std::uint64_t> words_;
};

/// By eight signs: all ones in byte i where bit i is set.
inline constexpr std::array<std::uint64_t, 256> k_sign_bytes = [] {
  std::array<std::uint64_t, 256> masks{};
  for (std::size_t signs = 0; signs < 256; ++signs) {
    for (std::size_t i = 0; i < 8; ++i) {
      if ((signs >> i & 1U) != 0) masks[signs] |= std::uint64_t{0xFF} << (8 * i);
    }
  }
  return masks;
}();

/// By the seven signs that are stored; the eighth makes their number even.
inline constexpr std::array<std::uint64_t, 128> k_even_sign_bytes = [] {
  std::array<std::uint64_t, 128> masks{};
  for (unsigned seven = 0; seven < 128; ++seven) {
    masks[seven] = k_sign_bytes[seven | static_cast<unsigned>(std::popcount(seven) % 2) << 7];
  }
  return masks;
}();

/// Bytes of 1 .. 127 that turn negative where the mask is set: no carry leaves a byte.
inline std::uint64_t with_signs(std::uint64_t bytes, std::uint64_t mask) {
  return (bytes ^ mask) + (mask & 0x0101010101010101U);
}

} // namespace modeld::quantize
