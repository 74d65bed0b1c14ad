// SPDX-License-Identifier: Apache-2.0

// Floats from blocks of trits, pairs of bits and signs.

#include "quantize/kernels/table.hpp"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/few_bits_values.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/values-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily few_bits_values_family() {
  return {HWY_TARGET, {}};
}

#else

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

KernelFamily few_bits_values_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
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
MODELD_KERNEL_FAMILY(few_bits_values_kernels, few_bits_values_family);
} // namespace modeld::quantize
#endif
