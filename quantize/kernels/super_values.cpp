// SPDX-License-Identifier: Apache-2.0

// Floats from super-blocks: Q2_K to Q6_K, IQ4_XS.

#include "quantize/kernels/table.hpp"
#include "quantize/reference/k_scales.hpp"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/super_values.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/values-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily super_values_family() {
  return {HWY_TARGET, {}};
}

#else

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

KernelFamily super_values_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
      kernel<BlockQ2K, 16, true, unpack_q2_k>(q2_k),
      kernel<BlockQ3K, 16, false, unpack_q3_k>(q3_k),
      kernel<BlockQ4K, 32, true, unpack_q4_k>(q4_k),
      kernel<BlockQ5K, 32, true, unpack_q5_k>(q5_k),
      kernel<BlockQ6K, 16, false, unpack_q6_k>(q6_k),
      kernel<BlockIQ4XS, 32, false, unpack_iq4_xs>(iq4_xs),
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(super_values_kernels, super_values_family);
} // namespace modeld::quantize
#endif
