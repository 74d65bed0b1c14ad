// SPDX-License-Identifier: Apache-2.0

// Floats from blocks of 32, and of NVFP4.

#include "quantize/kernels/table.hpp"
#include "quantize/reference/fp4_scales.hpp"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/block_values.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/values-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily block_values_family() {
  return {HWY_TARGET, {}};
}

#else

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

KernelFamily block_values_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
      kernel<BlockQ4_0, 32, false, unpack_q4_0>(q4_0),
      kernel<BlockQ4_1, 32, true, unpack_q4_1>(q4_1),
      kernel<BlockQ5_0, 32, false, unpack_q5_0>(q5_0),
      kernel<BlockQ5_1, 32, true, unpack_q5_1>(q5_1),
      kernel<BlockQ8_0, 32, false, unpack_q8_0>(q8_0),
      kernel<BlockIQ4NL, 32, false, unpack_iq4_nl>(iq4_nl),
      kernel<BlockMXFP4, 32, false, unpack_mxfp4>(mxfp4),
      kernel<BlockNVFP4, 16, false, unpack_nvfp4>(nvfp4),
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(block_values_kernels, block_values_family);
} // namespace modeld::quantize
#endif
