// SPDX-License-Identifier: Apache-2.0

// From blocks back to floats, for the types without a grid: unpack levels to signed bytes, then
// multiply each sub-block by its scale, in the definition's order of roundings.

#include "quantize/gguf/block_layout.hpp"
#include "quantize/kernels/table.hpp"
#include "quantize/reference/fp4_scales.hpp"
#include "quantize/reference/iq4_values.hpp"
#include "quantize/reference/k_scales.hpp"

#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/dequantize.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/lanes-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily dequantize_family() {
  return {HWY_TARGET, {}};
}

#else

/// A block between its two stages.
struct Unpacked {
  alignas(64) std::int8_t level[k_super];
  float scale[16]; ///< of each sub-block
  float add[16];   ///< where the type has minima
};

using B16 = hn::FixedTag<std::uint8_t, 16>;
using B16V = hn::VFromD<B16>;
constexpr B16 k_b{};

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

// 32-element types -------------------------------------------------------------------------------

/// 16 bytes to 32 levels, low nibbles first.
HWY_INLINE void nibbles(const std::uint8_t* qs, B16V& low, B16V& high) {
  const B16V v = load(qs);
  low = low_nibbles(v);
  high = high_nibbles(v);
}

/// 16 where bit i of 16 is set.
HWY_INLINE B16V fifth_bits(const std::uint8_t* bits) {
  return hn::And(hn::VecFromMask(k_b, hn::LoadMaskBits(k_b, bits)), all(16));
}

HWY_INLINE void unpack_q4_0(const BlockQ4_0& y, Unpacked& to) {
  B16V low, high;
  nibbles(y.qs.data(), low, high);
  put(hn::Sub(low, all(8)), to.level);
  put(hn::Sub(high, all(8)), to.level + 16);
  to.scale[0] = y.d.value();
}
HWY_INLINE void unpack_q4_1(const BlockQ4_1& y, Unpacked& to) {
  B16V low, high;
  nibbles(y.qs.data(), low, high);
  put(low, to.level);
  put(high, to.level + 16);
  to.scale[0] = y.d.value();
  to.add[0] = y.m.value();
}
HWY_INLINE void unpack_q5_0(const BlockQ5_0& y, Unpacked& to) {
  B16V low, high;
  nibbles(y.qs.data(), low, high);
  put(hn::Sub(hn::Or(low, fifth_bits(y.qh.data())), all(16)), to.level);
  put(hn::Sub(hn::Or(high, fifth_bits(y.qh.data() + 2)), all(16)), to.level + 16);
  to.scale[0] = y.d.value();
}
HWY_INLINE void unpack_q5_1(const BlockQ5_1& y, Unpacked& to) {
  B16V low, high;
  nibbles(y.qs.data(), low, high);
  put(hn::Or(low, fifth_bits(y.qh.data())), to.level);
  put(hn::Or(high, fifth_bits(y.qh.data() + 2)), to.level + 16);
  to.scale[0] = y.d.value();
  to.add[0] = y.m.value();
}
HWY_INLINE void unpack_q8_0(const BlockQ8_0& y, Unpacked& to) {
  std::memcpy(to.level, y.qs.data(), 32);
  to.scale[0] = y.d.value();
}

/// Looks nibbles up in sixteen signed bytes.
HWY_INLINE void valued_nibbles(const std::uint8_t* qs, const std::int8_t* values, std::int8_t* to) {
  const auto table = hn::LoadU(k_b, reinterpret_cast<const std::uint8_t*>(values));
  B16V low, high;
  nibbles(qs, low, high);
  put(hn::TableLookupBytes(table, low), to);
  put(hn::TableLookupBytes(table, high), to + 16);
}

constexpr auto k_iq4_bytes = [] {
  std::array<std::int8_t, 16> bytes{};
  for (std::size_t i = 0; i < 16; ++i) {
    bytes[i] = static_cast<std::int8_t>(reference::k_iq4_values[i]);
  }
  return bytes;
}();
/// E2M1, doubled; the sign in bit 3.
constexpr std::array<std::int8_t, 16> k_fp4_bytes{0, 1,  2,  3,  4,  6,  8,  12,
                                                  0, -1, -2, -3, -4, -6, -8, -12};

HWY_INLINE void unpack_iq4_nl(const BlockIQ4NL& y, Unpacked& to) {
  valued_nibbles(y.qs.data(), k_iq4_bytes.data(), to.level);
  to.scale[0] = y.d.value();
}
HWY_INLINE void unpack_mxfp4(const BlockMXFP4& y, Unpacked& to) {
  valued_nibbles(y.qs.data(), k_fp4_bytes.data(), to.level);
  to.scale[0] = reference::half_of_e8m0(y.e);
}
HWY_INLINE void unpack_nvfp4(const BlockNVFP4& y, Unpacked& to) {
  const auto table = hn::LoadU(k_b, reinterpret_cast<const std::uint8_t*>(k_fp4_bytes.data()));
  const hn::Repartition<std::uint64_t, B16> halves;
  for (std::size_t k = 0; k < 2; ++k) { // two sub-blocks of 16, eight bytes each
    B16V low, high;
    nibbles(y.qs.data() + 16 * k, low, high);
    const auto l = hn::BitCast(halves, hn::TableLookupBytes(table, low));
    const auto h = hn::BitCast(halves, hn::TableLookupBytes(table, high));
    put(hn::BitCast(k_b, hn::InterleaveLower(halves, l, h)), to.level + 32 * k);
    put(hn::BitCast(k_b, hn::InterleaveUpper(halves, l, h)), to.level + 32 * k + 16);
  }
  for (std::size_t s = 0; s < 4; ++s)
    to.scale[s] = reference::half_of_ue4m3(y.d[s]);
}

// Super-blocks -----------------------------------------------------------------------------------

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

HWY_INLINE void unpack_q2_k(const BlockQ2K& y, Unpacked& to) {
  unpack_pairs(y.qs.data(), to.level);
  unpack_pairs(y.qs.data() + 32, to.level + 128);
  const float d = y.d.value();
  const float dmin = y.dmin.value();
  for (std::size_t j = 0; j < 16; ++j) {
    to.scale[j] = d * static_cast<float>(y.scales[j] & 0xF);
    to.add[j] = -(dmin * static_cast<float>(y.scales[j] >> 4));
  }
}

HWY_INLINE void unpack_q3_k(const BlockQ3K& y, Unpacked& to) {
  unpack_pairs(y.qs.data(), to.level);
  unpack_pairs(y.qs.data() + 32, to.level + 128);
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t half = 0; half < 32; half += 16) {
      // Minus four where the high bit is not set.
      const auto set_bit = hn::TestBit(load(y.hmask.data() + half), all(1 << k));
      std::int8_t* const at = to.level + 32 * k + half;
      const B16V level = load(reinterpret_cast<const std::uint8_t*>(at));
      put(hn::Sub(level, hn::IfThenZeroElse(set_bit, all(4))), at);
    }
  }
  const float d = y.d.value();
  for (std::size_t j = 0; j < 16; ++j) {
    to.scale[j] = d * static_cast<float>(reference::unpack_q3_scale(j, y.scales) - 32);
  }
}

template <class Block>
HWY_INLINE void six_bit_scales(const Block& y, Unpacked& to) {
  const float d = y.d.value();
  const float dmin = y.dmin.value();
  for (std::size_t j = 0; j < 8; ++j) {
    const auto stored = reference::unpack_scale_min(j, y.scales);
    to.scale[j] = d * static_cast<float>(stored.scale);
    to.add[j] = -(dmin * static_cast<float>(stored.min));
  }
}

HWY_INLINE void unpack_q4_k(const BlockQ4K& y, Unpacked& to) {
  for (std::size_t i = 0; i < 128; i += 16) {
    const B16V v = load(y.qs.data() + i);
    std::int8_t* const at = to.level + 64 * (i / 32) + i % 32;
    put(low_nibbles(v), at);
    put(high_nibbles(v), at + 32);
  }
  six_bit_scales(y, to);
}

HWY_INLINE void unpack_q5_k(const BlockQ5K& y, Unpacked& to) {
  for (std::size_t i = 0; i < 128; i += 16) {
    const B16V v = load(y.qs.data() + i);
    const B16V fifth = load(y.qh.data() + i % 32);
    const int bit = 1 << (2 * (i / 32));
    const B16V none = hn::Zero(k_b);
    const B16V first = hn::IfThenElse(hn::TestBit(fifth, all(bit)), all(16), none);
    const B16V second = hn::IfThenElse(hn::TestBit(fifth, all(2 * bit)), all(16), none);
    std::int8_t* const at = to.level + 64 * (i / 32) + i % 32;
    put(hn::Or(low_nibbles(v), first), at);
    put(hn::Or(high_nibbles(v), second), at + 32);
  }
  six_bit_scales(y, to);
}

HWY_INLINE void unpack_q6_k(const BlockQ6K& y, Unpacked& to) {
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t l = 0; l < 32; l += 16) {
      const B16V first = load(y.ql.data() + 64 * h + l);
      const B16V second = load(y.ql.data() + 64 * h + 32 + l);
      const B16V pairs = load(y.qh.data() + 32 * h + l);
      const B16V high = all(0x30);
      const B16V bias = all(32);
      std::int8_t* const at = to.level + 128 * h + l;
      const B16V a = hn::And(hn::ShiftLeft<4>(pairs), high);
      const B16V b = hn::And(hn::ShiftLeft<2>(pairs), high);
      const B16V c = hn::And(pairs, high);
      const B16V e = hn::And(hn::ShiftRight<2>(pairs), high);
      put(hn::Sub(hn::Or(low_nibbles(first), a), bias), at);
      put(hn::Sub(hn::Or(low_nibbles(second), b), bias), at + 32);
      put(hn::Sub(hn::Or(high_nibbles(first), c), bias), at + 64);
      put(hn::Sub(hn::Or(high_nibbles(second), e), bias), at + 96);
    }
  }
  const float d = y.d.value();
  for (std::size_t j = 0; j < 16; ++j)
    to.scale[j] = d * static_cast<float>(y.scales[j]);
}

HWY_INLINE void unpack_iq4_xs(const BlockIQ4XS& y, Unpacked& to) {
  const int high = y.scales_h[0] | (y.scales_h[1] << 8);
  const float d = y.d.value();
  for (std::size_t s = 0; s < 8; ++s) {
    valued_nibbles(y.qs.data() + 16 * s, k_iq4_bytes.data(), to.level + 32 * s);
    const int low = (y.scales_l[s / 2] >> (4 * (s % 2))) & 0xF;
    to.scale[s] = d * static_cast<float>((low | (((high >> (2 * s)) & 3) << 4)) - 32);
  }
}

// Ternary and sign types -------------------------------------------------------------------------

/// Trit n of each of 16 bytes, minus one: the high byte of three times the low byte of v * 3^n.
HWY_INLINE B16V trits(B16V v, int power) {
  const hn::Repartition<std::uint16_t, B16> words;
  const auto p = hn::Set(words, static_cast<std::uint16_t>(power));
  const auto byte = hn::Set(words, std::uint16_t{0xFF});
  const auto three = hn::Set(words, std::uint16_t{3});
  const auto wide = hn::BitCast(words, v);
  const auto even = hn::Mul(hn::And(hn::Mul(hn::And(wide, byte), p), byte), three);
  const auto odd = hn::Mul(hn::And(hn::Mul(hn::ShiftRight<8>(wide), p), byte), three);
  const auto both = hn::Or(hn::ShiftRight<8>(even), hn::AndNot(byte, odd));
  return hn::Sub(hn::BitCast(k_b, both), all(1));
}

HWY_INLINE void unpack_tq1_0(const BlockTQ1_0& y, Unpacked& to) {
  constexpr int k_powers[] = {1, 3, 9, 27, 81};
  std::uint8_t tail[16] = {};
  std::memcpy(tail, y.qh.data(), 4);
  for (std::size_t n = 0; n < 5; ++n) {
    put(trits(load(y.qs.data()), k_powers[n]), to.level + 32 * n);
    put(trits(load(y.qs.data() + 16), k_powers[n]), to.level + 32 * n + 16);
    put(trits(load(y.qs.data() + 32), k_powers[n]), to.level + 160 + 16 * n);
    if (n == 4) break;
    std::uint8_t last[16];
    hn::StoreU(trits(load(tail), k_powers[n]), k_b, last);
    std::memcpy(to.level + 240 + 4 * n, last, 4);
  }
  to.scale[0] = y.d.value();
}

HWY_INLINE void minus_one(std::size_t n, Unpacked& to) {
  for (std::size_t i = 0; i < n; i += 16) {
    const B16V v = load(reinterpret_cast<const std::uint8_t*>(to.level + i));
    put(hn::Sub(v, all(1)), to.level + i);
  }
}

HWY_INLINE void unpack_tq2_0(const BlockTQ2_0& y, Unpacked& to) {
  unpack_pairs(y.qs.data(), to.level);
  unpack_pairs(y.qs.data() + 32, to.level + 128);
  minus_one(k_super, to);
  to.scale[0] = y.d.value();
}

HWY_INLINE void unpack_q2_0(const BlockQ2_0& y, Unpacked& to) {
  const B16V v = load(y.qs.data());
  const hn::Repartition<std::uint16_t, B16> words;
  const B16V a = hn::And(v, all(3));
  const B16V b = hn::And(hn::ShiftRight<2>(v), all(3));
  const B16V c = hn::And(hn::ShiftRight<4>(v), all(3));
  const B16V e = hn::ShiftRight<6>(v);
  const auto ab_low = hn::BitCast(words, hn::InterleaveLower(k_b, a, b));
  const auto ab_high = hn::BitCast(words, hn::InterleaveUpper(k_b, a, b));
  const auto ce_low = hn::BitCast(words, hn::InterleaveLower(k_b, c, e));
  const auto ce_high = hn::BitCast(words, hn::InterleaveUpper(k_b, c, e));
  put(hn::BitCast(k_b, hn::InterleaveLower(words, ab_low, ce_low)), to.level);
  put(hn::BitCast(k_b, hn::InterleaveUpper(words, ab_low, ce_low)), to.level + 16);
  put(hn::BitCast(k_b, hn::InterleaveLower(words, ab_high, ce_high)), to.level + 32);
  put(hn::BitCast(k_b, hn::InterleaveUpper(words, ab_high, ce_high)), to.level + 48);
  minus_one(64, to);
  to.scale[0] = y.d.value();
}

HWY_INLINE void unpack_q1_0(const BlockQ1_0& y, Unpacked& to) {
  for (std::size_t i = 0; i < 8; ++i) {
    const auto positive = hn::LoadMaskBits(k_b, y.qs.data() + 2 * i);
    put(hn::IfThenElse(positive, all(1), all(255)), to.level + 16 * i);
  }
  to.scale[0] = y.d.value();
}

template <class Block, std::size_t Sub, bool Add, void (*Unpack)(const Block&, Unpacked&)>
constexpr Kernel kernel(TensorType type) {
  return {type, nullptr, dequantize<Block, Sub, Add, Unpack>};
}

KernelFamily dequantize_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
      kernel<BlockQ4_0, 32, false, unpack_q4_0>(q4_0),
      kernel<BlockQ4_1, 32, true, unpack_q4_1>(q4_1),
      kernel<BlockQ5_0, 32, false, unpack_q5_0>(q5_0),
      kernel<BlockQ5_1, 32, true, unpack_q5_1>(q5_1),
      kernel<BlockQ8_0, 32, false, unpack_q8_0>(q8_0),
      kernel<BlockQ2K, 16, true, unpack_q2_k>(q2_k),
      kernel<BlockQ3K, 16, false, unpack_q3_k>(q3_k),
      kernel<BlockQ4K, 32, true, unpack_q4_k>(q4_k),
      kernel<BlockQ5K, 32, true, unpack_q5_k>(q5_k),
      kernel<BlockQ6K, 16, false, unpack_q6_k>(q6_k),
      kernel<BlockIQ4NL, 32, false, unpack_iq4_nl>(iq4_nl),
      kernel<BlockIQ4XS, 32, false, unpack_iq4_xs>(iq4_xs),
      kernel<BlockMXFP4, 32, false, unpack_mxfp4>(mxfp4),
      kernel<BlockNVFP4, 16, false, unpack_nvfp4>(nvfp4),
      kernel<BlockTQ1_0, 256, false, unpack_tq1_0>(tq1_0),
      kernel<BlockTQ2_0, 256, false, unpack_tq2_0>(tq2_0),
      kernel<BlockQ2_0, 64, false, unpack_q2_0>(q2_0),
      kernel<BlockQ1_0, 128, false, unpack_q1_0>(q1_0),
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(dequantize_kernels, dequantize_family);
} // namespace modeld::quantize
#endif
