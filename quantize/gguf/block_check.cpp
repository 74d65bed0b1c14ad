// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_check.hpp"

#include "quantize/reference/half.hpp"

#include <array>
#include <cstring>

namespace modeld::quantize {
namespace {

using reference::load_u16;

bool bad_half(const std::byte* at) {
  return (load_u16(at) & 0x7C00U) == 0x7C00U;
}

bool bad_bf16(const std::byte* at) {
  return (load_u16(at) & 0x7F80U) == 0x7F80U;
}

template <class Bits>
Bits load(const std::byte* at) {
  Bits bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

/// The scale of IQ1_M lies in the top nibbles of four 16-bit words.
bool bad_iq1_m(const std::byte* block) {
  constexpr std::size_t k_scales = 48;
  std::uint16_t scale = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    scale =
        static_cast<std::uint16_t>(scale | ((load_u16(block + k_scales + 2 * i) >> 12) << (4 * i)));
  }
  return (scale & 0x7C00U) == 0x7C00U;
}

/// Where the binary16 scales of a block stand.
struct ScalePlace {
  std::size_t offset;
  std::size_t count;
};

ScalePlace scale_place(TensorType type) {
  switch (type) {
  case TensorType::q4_1:
  case TensorType::q5_1:
  case TensorType::q4_k:
  case TensorType::q5_k:
    return {0, 2};
  case TensorType::q2_k:
    return {80, 2};
  case TensorType::q3_k:
    return {108, 1};
  case TensorType::q6_k:
    return {208, 1};
  case TensorType::tq1_0:
    return {52, 1};
  case TensorType::tq2_0:
    return {64, 1};
  default:
    return {0, 1};
  }
}

bool bad_block(TensorType type, const std::byte* block) {
  switch (type) {
  case TensorType::f32:
    return (load<std::uint32_t>(block) & 0x7F800000U) == 0x7F800000U;
  case TensorType::f64:
    return (load<std::uint64_t>(block) & 0x7FF0000000000000U) == 0x7FF0000000000000U;
  case TensorType::bf16:
    return bad_bf16(block);
  case TensorType::mxfp4:
    return block[0] == std::byte{0xFF};
  case TensorType::iq1_m:
    return bad_iq1_m(block);
  case TensorType::nvfp4:
  case TensorType::i8:
  case TensorType::i16:
  case TensorType::i32:
  case TensorType::i64:
    return false;
  default: {
    const ScalePlace place = scale_place(type);
    return bad_half(block + place.offset) ||
           (place.count == 2 && bad_half(block + place.offset + 2));
  }
  }
}

/// The plain types, in strides of fixed length that compilers turn into vectors.
template <class Bits, Bits Exponent>
bool all_finite(std::span<const std::byte> values) {
  constexpr std::size_t k_stride = 64;
  std::array<Bits, k_stride> words{};
  for (; values.size() >= sizeof words; values = values.subspan(sizeof words)) {
    std::memcpy(words.data(), values.data(), sizeof words);
    Bits largest = 0;
    for (std::size_t i = 0; i < k_stride; ++i) {
      const Bits exponent = words[i] & Exponent;
      largest = exponent > largest ? exponent : largest;
    }
    if (largest == Exponent) return false;
  }
  for (; values.size() >= sizeof(Bits); values = values.subspan(sizeof(Bits))) {
    if ((load<Bits>(values.data()) & Exponent) == Exponent) return false;
  }
  return true;
}

} // namespace

std::optional<std::uint64_t> first_bad_block(TensorType type, std::span<const std::byte> blocks) {
  if (type == TensorType::f32 && all_finite<std::uint32_t, 0x7F800000U>(blocks)) {
    return std::nullopt;
  }
  if (type == TensorType::f16 && all_finite<std::uint16_t, 0x7C00U>(blocks)) return std::nullopt;
  if (type == TensorType::bf16 && all_finite<std::uint16_t, 0x7F80U>(blocks)) return std::nullopt;
  const std::size_t bytes = info(type).bytes;
  for (std::uint64_t i = 0; (i + 1) * bytes <= blocks.size(); ++i) {
    if (bad_block(type, blocks.data() + i * bytes)) return i;
  }
  return std::nullopt;
}

} // namespace modeld::quantize
