// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The 16-bit floating-point formats, and integers and halves at any address. Results equal the
// reference's portable conversions for every bit pattern.

namespace modeld::quantize::reference {

/// IEEE binary16 to binary32: exact. A NaN keeps its sign and payload; a signalling one stays so,
/// except where the multiplication below quiets it, as in the reference.
inline float f16_to_f32(std::uint16_t half) {
  const std::uint32_t word = std::uint32_t{half} << 16;
  const std::uint32_t sign = word & 0x80000000U;
  const std::uint32_t magnitude = word + word; // exponent at bit 27
  // Subnormals: the mantissa below a fixed exponent, minus what that exponent adds.
  if (magnitude < (1U << 27)) {
    const float value = std::bit_cast<float>((magnitude >> 17) | (126U << 23)) - 0.5F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  // The rest: rebias by 224 - 112, in two steps, so that infinity and NaN come out right.
  const float value = std::bit_cast<float>((magnitude >> 4) + (0xE0U << 23)) * 0x1.0p-112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// Round to nearest even; beyond 65519.99 infinity; every NaN becomes 0x7E00 with its sign.
inline std::uint16_t f32_to_f16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t doubled = word + word; // without sign
  const auto sign = static_cast<std::uint16_t>((word & 0x80000000U) >> 16);
  if (doubled > 0xFF000000U) return sign | 0x7E00U;
  // Overflow becomes infinity in the first product; the second brings the value back, scaled so
  // that adding a power of two 13 bits above the last kept bit rounds it.
  float base = (std::bit_cast<float>(word & 0x7FFFFFFFU) * 0x1.0p+112F) * 0x1.0p-110F;
  std::uint32_t bias = doubled & 0xFF000000U;
  if (bias < 0x71000000U) bias = 0x71000000U;
  base = std::bit_cast<float>((bias >> 1) + 0x07800000U) + base;
  const auto bits = std::bit_cast<std::uint32_t>(base);
  const std::uint32_t exponent = (bits >> 13) & 0x7C00U;
  const std::uint32_t mantissa = bits & 0x0FFFU;
  return static_cast<std::uint16_t>(sign | (exponent + mantissa));
}

/// Exact: a bfloat16 is the upper half of a binary32.
inline float bf16_to_f32(std::uint16_t half) {
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

/// Round to nearest even; a NaN is cut off and made quiet.
inline std::uint16_t f32_to_bf16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<std::uint16_t>((word >> 16) | 0x40U);
  }
  return static_cast<std::uint16_t>((word + 0x7FFFU + ((word >> 16) & 1U)) >> 16);
}

/// Little-endian 16 bits at any address: GGUF's order, and that of every host we build for.
static_assert(std::endian::native == std::endian::little);
inline std::uint16_t load_u16(const std::byte* from) {
  std::uint16_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline void store_u16(std::byte* to, std::uint16_t value) {
  std::memcpy(to, &value, sizeof value);
}

} // namespace modeld::quantize::reference
