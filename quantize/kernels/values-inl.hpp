// SPDX-License-Identifier: Apache-2.0

// From blocks back to floats, for the types without a grid: levels are unpacked to signed bytes,
// then multiplied by the scale of their sub-block, in the definition's order of roundings.

#if defined(MODELD_QUANTIZE_KERNELS_VALUES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_VALUES_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_VALUES_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_VALUES_INL_HPP
#endif

#include "quantize/gguf/block_layout.hpp"
#include "quantize/kernels/lanes-inl.hpp"
#include "quantize/kernels/table.hpp"
#include "quantize/reference/iq4_values.hpp"

#include <array>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

/// A block between its two stages.
struct Unpacked {
  alignas(64) std::int8_t level[k_super];
  float scale[16]; ///< of each sub-block
  float add[16];   ///< where the type has minima
};

using B16 = hn::FixedTag<std::uint8_t, 16>;
using B16V = hn::VFromD<B16>;
inline constexpr B16 k_b{};

HWY_INLINE B16V load(const std::uint8_t* from) {
  return hn::LoadU(k_b, from);
}
HWY_INLINE B16V all(int value) {
  return hn::Set(k_b, static_cast<std::uint8_t>(value));
}
/// Stores bytes as the signed levels that they are.
HWY_INLINE void put(B16V value, std::int8_t* to) {
  hn::StoreU(value, k_b, reinterpret_cast<std::uint8_t*>(to));
}
HWY_INLINE B16V low_nibbles(B16V v) {
  return hn::And(v, all(15));
}
HWY_INLINE B16V high_nibbles(B16V v) {
  return hn::ShiftRight<4>(v);
}

/// Sub-blocks of Sub levels: level * scale (+ add).
template <std::size_t Elements, std::size_t Sub, bool Add>
HWY_INLINE void expand(const Unpacked& in, float* out) {
  const hn::Rebind<std::int8_t, Floats> bytes;
  for (std::size_t i = 0; i < Elements; i += hn::Lanes(k_f)) {
    const IntV level = hn::PromoteTo(k_i, hn::LoadU(bytes, in.level + i));
    FloatV v = hn::Mul(hn::ConvertTo(k_f, level), set(in.scale[i / Sub]));
    if constexpr (Add) v = hn::Add(v, set(in.add[i / Sub]));
    hn::StoreU(v, k_f, out + i);
  }
}

template <class Block, std::size_t Sub, bool Add, void (*Unpack)(const Block&, Unpacked&)>
void dequantize(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements, float* out) {
  const auto* block = reinterpret_cast<const Block*>(in);
  Unpacked unpacked;
  for (std::uint64_t at = 0; at < rows * row_elements; at += Block::k_elements) {
    Unpack(*block++, unpacked);
    expand<Block::k_elements, Sub, Add>(unpacked, out + at);
  }
}

/// 16 bytes to 32 levels, low nibbles first.
HWY_INLINE void nibbles(const std::uint8_t* qs, B16V& low, B16V& high) {
  const B16V v = load(qs);
  low = low_nibbles(v);
  high = high_nibbles(v);
}

/// Looks nibbles up in sixteen signed bytes.
HWY_INLINE void valued_nibbles(const std::uint8_t* qs, const std::int8_t* values, std::int8_t* to) {
  const auto table = hn::LoadU(k_b, reinterpret_cast<const std::uint8_t*>(values));
  B16V low, high;
  nibbles(qs, low, high);
  put(hn::TableLookupBytes(table, low), to);
  put(hn::TableLookupBytes(table, high), to + 16);
}

inline constexpr auto k_iq4_bytes = [] {
  std::array<std::int8_t, 16> bytes{};
  for (std::size_t i = 0; i < 16; ++i) {
    bytes[i] = static_cast<std::int8_t>(reference::k_iq4_values[i]);
  }
  return bytes;
}();
/// Pairs k of 32 bytes, lowest bits first: 128 levels.
HWY_INLINE void unpack_pairs(const std::uint8_t* qs, std::int8_t* to) {
  for (std::size_t half = 0; half < 32; half += 16) {
    const B16V v = load(qs + half);
    put(hn::And(v, all(3)), to + half);
    put(hn::And(hn::ShiftRight<2>(v), all(3)), to + 32 + half);
    put(hn::And(hn::ShiftRight<4>(v), all(3)), to + 64 + half);
    put(hn::ShiftRight<6>(v), to + 96 + half);
  }
}

template <class Block, std::size_t Sub, bool Add, void (*Unpack)(const Block&, Unpacked&)>
constexpr Kernel kernel(TensorType type) {
  return {type, nullptr, dequantize<Block, Sub, Add, Unpack>};
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
