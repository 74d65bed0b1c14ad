// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/reference/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// The 8-bit scales of MXFP4 and NVFP4. "half_of": half the scale, since the element table holds
// doubled values.

namespace modeld::quantize::reference {

/// E8M0, bias 127: the exponent that maps the magnitude below 8 = 2^3, one above E2M1's largest
/// power of two; 0 for zero. Below 2^-125 the exponent wraps, as in the reference.
inline std::uint8_t e8m0_for(float magnitude) {
  if (!(magnitude > 0.0F)) return 0;
  const int exponent = truncate(std::floor(std::log2(magnitude)) - 2.0F + 127.0F);
  return static_cast<std::uint8_t>(exponent & 0xFF);
}

inline float half_of_e8m0(std::uint8_t e) {
  // 2^-128 and 2^-127 are subnormal.
  if (e < 2) return std::bit_cast<float>(0x00200000U << e);
  return std::bit_cast<float>((std::uint32_t{e} - 1U) << 23);
}

/// E4M3 without sign, bias 7: 0 for what is not above zero; at most 448; halves round up, not to
/// even, and what would round to NaN's pattern becomes 448.
inline std::uint8_t to_ue4m3(float x) {
  constexpr std::uint8_t k_max = 0x7E;
  if (!(x > 0.0F)) return 0;
  x = std::min(x, 448.0F);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  int exponent = static_cast<int>((bits >> 23) & 0xFF) - 127 + 7;
  if (exponent <= 0) {
    return static_cast<std::uint8_t>(std::min(truncate(x * 512.0F + 0.5F), 7));
  }
  if (exponent >= 15) return k_max;
  int mantissa = static_cast<int>((bits >> 20) & 7) + static_cast<int>((bits >> 19) & 1);
  if (mantissa > 7) {
    mantissa = 0;
    if (++exponent >= 15) return k_max;
  }
  return static_cast<std::uint8_t>((exponent << 3) | mantissa);
}

inline float half_of_ue4m3(std::uint8_t x) {
  if (x == 0 || x == 0x7F) return 0.0F;
  const int exponent = (x >> 3) & 0xF;
  const auto mantissa = static_cast<float>(x & 7);
  const float value =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1.0F + mantissa / 8.0F, exponent - 7);
  return value * 0.5F;
}

} // namespace modeld::quantize::reference
