// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

// Tests of bits over whole spans. The inner loops have a constant length, no branch and no order,
// so that compilers turn them into vectors for the baseline instruction set; memory is the limit.

namespace modeld::validate {

// Exponents of infinities and NaNs, by type.
inline constexpr std::uint16_t k_half_ones = 0x7C00;
inline constexpr std::uint16_t k_bf16_ones = 0x7F80;
inline constexpr std::uint32_t k_float_ones = 0x7F800000;
inline constexpr std::uint64_t k_double_ones = 0x7FF0000000000000ULL;

template <class T>
T load_le(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) {
    T swapped = 0;
    for (std::size_t i = 0; i < sizeof value; ++i)
      swapped = static_cast<T>(swapped << 8 | ((value >> (8 * i)) & 0xFF));
    value = swapped;
  }
  return value;
}

template <class T>
T byte_swapped(T value) {
  T swapped = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    swapped =
        static_cast<T>(static_cast<T>(swapped << 8) | static_cast<T>((value >> (8 * i)) & 0xFF));
  return swapped;
}

/// Whether any element of type T has all bits of the mask set, and so is Inf or NaN by its
/// exponent. `bytes` is a whole number of elements.
template <class T>
bool any_all_ones(std::span<const std::byte> bytes, T mask) {
  constexpr std::size_t k_lane = 256 / sizeof(T);
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size() / sizeof(T);
  for (; left >= k_lane; left -= k_lane, at += k_lane * sizeof(T)) {
    std::array<T, k_lane> values;
    std::memcpy(values.data(), at, sizeof values);
    T bad = 0;
    for (std::size_t i = 0; i < k_lane; ++i)
      bad = static_cast<T>(bad | static_cast<T>((values[i] & mask) == mask ? ~T{0} : T{0}));
    if (bad != 0) return true;
  }
  for (; left > 0; --left, at += sizeof(T)) {
    T value{};
    std::memcpy(&value, at, sizeof value);
    if ((value & mask) == mask) return true;
  }
  return false;
}

/// Whether all bytes equal `first`; stops at the first that does not.
inline bool all_equal(std::span<const std::byte> bytes, std::byte first) {
  if (bytes.empty()) return true;
  if (bytes[0] != first) return false;
  return std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

} // namespace modeld::validate
