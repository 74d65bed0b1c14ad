// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Conversions from float to integer as the reference's build has them, defined for every input.

namespace modeld::quantize::reference {

/// Nearest integer, ties to even, for |x| below 2^22: adding 1.5 * 2^23 leaves the integer in the
/// mantissa. Beyond, the result wraps, and the reference relies on no more than that.
inline int nearest_int(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 12582912.0F);
  return static_cast<int>(bits & 0x007FFFFFU) - 0x00400000;
}

/// Toward zero; what does not fit becomes the lowest integer, as the x86 conversion has it. Blocks
/// whose scale is so small that its inverse is infinite come here.
inline int truncate(float x) {
  if (!(x >= -2147483648.0F && x < 2147483648.0F)) return std::numeric_limits<int>::min();
  return static_cast<int>(x);
}

/// The low 8 bits of the truncated value, signed.
inline std::int8_t truncate_i8(float x) {
  return static_cast<std::int8_t>(static_cast<std::uint32_t>(truncate(x)) & 0xFFU);
}

/// Nearest, halves away from zero, then as truncate().
inline int round_away(float x) {
  return truncate(std::round(x));
}

} // namespace modeld::quantize::reference
