// SPDX-License-Identifier: Apache-2.0

// Types whose scale follows from the largest magnitude and whose levels need no search: TQ1_0,
// TQ2_0, Q2_0, MXFP4, NVFP4; and Q1_0, whose scale is a mean. Layouts:
// quantize/reference/ternary.cpp and fp4.cpp.

#include "quantize/gguf/block_layout.hpp"
#include "quantize/kernels/table.hpp"
#include "quantize/reference/fp4_scales.hpp"

#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/few_bits.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/blocks-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily few_bits_family() {
  return {HWY_TARGET, {}};
}

#else

/// Outside of these bounds a scale's inverse may not be finite; such blocks go to the scalar code.
constexpr float k_least = 1e-30F;
constexpr float k_most = 1e30F;

HWY_INLINE bool is_ordinary(float magnitude) {
  return magnitude == 0.0F || (magnitude >= k_least && magnitude <= k_most);
}

/// A function for one block; false where the scalar code has to do it.
template <class Block>
using QuantizeBlock = bool (*)(const float*, Block&);

template <TensorType Type, class Block, QuantizeBlock<Block> One>
void quantize(const float* in, std::uint64_t rows, std::uint64_t row_elements,
              const float* importance, std::byte* out) {
  auto* block = reinterpret_cast<Block*>(out);
  for (std::uint64_t at = 0; at < rows * row_elements; at += Block::k_elements, ++block) {
    if (HWY_LIKELY(One(in + at, *block))) continue;
    scalar_codec(Type).quantize(in + at, 1, Block::k_elements, importance,
                                reinterpret_cast<std::byte*>(block));
  }
}

// Ternary ----------------------------------------------------------------------------------------

/// Levels 0, 1, 2 of n weights: round(x / d) + 1. Halves go away from zero, and the quotient is
/// within one, so two comparisons round.
HWY_INLINE void ternary_levels(const float* x, std::size_t n, float inverse, std::uint8_t* levels) {
  const hn::Rebind<std::uint8_t, Floats> bytes;
  for (std::size_t i = 0; i < n; i += hn::Lanes(k_f)) {
    const FloatV v = hn::Mul(hn::LoadU(k_f, x + i), set(inverse));
    const auto above = hn::RebindMask(k_i, hn::Ge(v, set(0.5F)));
    const auto below = hn::RebindMask(k_i, hn::Le(v, set(-0.5F)));
    const IntV two = hn::IfThenElse(above, hn::Set(k_i, 2), hn::Set(k_i, 1));
    hn::StoreU(hn::DemoteTo(bytes, hn::IfThenZeroElse(below, two)), bytes, levels + i);
  }
}

/// Levels of a block by its largest magnitude, which becomes d.
template <std::size_t N>
HWY_INLINE bool ternary(const float* x, Half& d, std::uint8_t* levels) {
  const float magnitude = largest_magnitude(x, N);
  if (!is_ordinary(magnitude)) return false;
  d.set(magnitude);
  ternary_levels(x, N, magnitude != 0.0F ? 1.0F / magnitude : 0.0F, levels);
  return true;
}

bool quantize_tq2_0(const float* x, BlockTQ2_0& y) {
  alignas(64) std::uint8_t levels[k_super];
  if (!ternary<k_super>(x, y.d, levels)) return false;
  pack_quarters(levels, y.qs.data());
  pack_quarters(levels + 128, y.qs.data() + 32);
  return true;
}

/// Five trits as a fraction of 256, rounded up.
constexpr auto k_trit_bytes = [] {
  std::array<std::uint8_t, 243> bytes{};
  for (unsigned q = 0; q < 243; ++q)
    bytes[q] = static_cast<std::uint8_t>((q * 256 + 242) / 243);
  return bytes;
}();

/// The number whose base-3 digits are levels[0], levels[stride], ... of `count`, then zeros.
HWY_INLINE std::uint8_t trit_byte(const std::uint8_t* levels, std::size_t stride,
                                  std::size_t count) {
  unsigned q = 0;
  for (std::size_t n = 0; n < 5; ++n)
    q = q * 3 + (n < count ? levels[n * stride] : 0U);
  return k_trit_bytes[q];
}

bool quantize_tq1_0(const float* x, BlockTQ1_0& y) {
  alignas(64) std::uint8_t levels[k_super];
  if (!ternary<k_super>(x, y.d, levels)) return false;
  for (std::size_t m = 0; m < 32; ++m)
    y.qs[m] = trit_byte(levels + m, 32, 5);
  for (std::size_t m = 0; m < 16; ++m)
    y.qs[32 + m] = trit_byte(levels + 160 + m, 16, 5);
  for (std::size_t m = 0; m < 4; ++m)
    y.qh[m] = trit_byte(levels + 240 + m, 4, 4);
  return true;
}

bool quantize_q2_0(const float* x, BlockQ2_0& y) {
  alignas(64) std::uint8_t levels[BlockQ2_0::k_elements];
  if (!ternary<BlockQ2_0::k_elements>(x, y.d, levels)) return false;
  for (std::size_t i = 0; i < y.qs.size(); ++i) {
    std::uint32_t four = 0; // the levels of a byte, one in each byte
    std::memcpy(&four, levels + 4 * i, 4);
    y.qs[i] = static_cast<std::uint8_t>(four | four >> 6 | four >> 12 | four >> 18);
  }
  return true;
}

// Four-bit floats --------------------------------------------------------------------------------

/// Nibbles of n weights, n 16 or 32: the E2M1 value nearest to x / scale, of two equally near ones
/// the smaller; weight i with weight i + n / 2. The definition compares distances; halfway between
/// neighbours these are exact, so that the comparison with halfway decides as it does.
HWY_INLINE void fp4_nibbles(const float* x, std::size_t n, float scale, std::uint8_t* out) {
  constexpr float k_halfway[] = {0.5F, 1.5F, 2.5F, 3.5F, 5.0F, 7.0F, 10.0F};
  alignas(64) std::uint8_t levels[32];
  const IntV one = hn::Set(k_i, 1);
  for (std::size_t i = 0; i < n; i += hn::Lanes(k_f)) {
    const FloatV v = hn::LoadU(k_f, x + i);
    const FloatV size = hn::Abs(v);
    IntV level = hn::Zero(k_i);
    for (const float halfway : k_halfway) {
      const auto above = hn::RebindMask(k_i, hn::Gt(size, set(halfway * scale)));
      level = hn::Add(level, hn::IfThenElseZero(above, one));
    }
    // No sign on zero: the definition takes the first of its two zeros.
    const auto negative =
        hn::And(hn::RebindMask(k_i, hn::Lt(v, hn::Zero(k_f))), hn::Gt(level, hn::Zero(k_i)));
    const IntV sign = hn::IfThenElseZero(negative, hn::Set(k_i, 8));
    store_bytes(hn::Or(level, sign), levels + i);
  }
  for (std::size_t i = 0; i < n / 2; ++i) {
    out[i] = static_cast<std::uint8_t>(levels[i] | levels[i + n / 2] << 4);
  }
}

bool quantize_mxfp4(const float* x, BlockMXFP4& y) {
  const float magnitude = largest_magnitude(x, BlockMXFP4::k_elements);
  if (!is_ordinary(magnitude)) return false;
  if (magnitude == 0.0F) {
    y = {};
    return true;
  }
  // The exponent, but next below a power of two, where the definition's logarithm rounds up to it.
  const auto bits = std::bit_cast<std::uint32_t>(magnitude);
  constexpr std::uint32_t k_near_top = 0x007FFF00;
  const bool near_top = (bits & 0x007FFFFF) >= k_near_top;
  y.e = near_top ? reference::e8m0_for(magnitude) : static_cast<std::uint8_t>((bits >> 23) - 2);
  fp4_nibbles(x, BlockMXFP4::k_elements, reference::half_of_e8m0(y.e), y.qs.data());
  return true;
}

bool quantize_nvfp4(const float* x, BlockNVFP4& y) {
  constexpr std::size_t k_sub = 16;
  constexpr float k_largest_scale = 448.0F;
  for (std::size_t s = 0; s < y.d.size(); ++s) {
    const float magnitude = largest_magnitude(x + k_sub * s, k_sub);
    // Far above the largest scale distances to all values round to the same.
    if (!(magnitude <= 6.0F * k_largest_scale)) return false;
    y.d[s] = reference::to_ue4m3(magnitude / 6.0F);
    const float scale = reference::half_of_ue4m3(y.d[s]);
    std::uint8_t* const to = y.qs.data() + k_sub / 2 * s;
    if (scale == 0.0F) {
      std::memset(to, 0, k_sub / 2);
    } else {
      fp4_nibbles(x + k_sub * s, k_sub, scale, to);
    }
  }
  return true;
}

// Signs ------------------------------------------------------------------------------------------

void quantize_q1_0(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                   const float* /*importance*/, std::byte* out) {
  const hn::FixedTag<float, 4> d;
  constexpr std::size_t k_elements = BlockQ1_0::k_elements;
  const std::uint64_t blocks = rows * row_elements / k_elements;
  auto* block = reinterpret_cast<BlockQ1_0*>(out);
  for (std::uint64_t first = 0; first < blocks; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, blocks - first));
    const float* x[k_batch];
    float sums[k_batch];
    for (std::size_t b = 0; b < k_batch; ++b) {
      x[b] = in + (first + std::min(b, count - 1)) * k_elements;
    }
    sums_of<Magnitude>(x, k_elements, count, sums);
    for (std::size_t b = 0; b < count; ++b, ++block) {
      block->d.set(sums[b] / static_cast<float>(k_elements));
      for (std::size_t i = 0; i < k_elements; i += 8) {
        std::uint8_t low[8]; // StoreMaskBits may write more than it has bits for
        std::uint8_t high[8];
        hn::StoreMaskBits(d, hn::Ge(hn::LoadU(d, x[b] + i), hn::Zero(d)), low);
        hn::StoreMaskBits(d, hn::Ge(hn::LoadU(d, x[b] + i + 4), hn::Zero(d)), high);
        block->qs[i / 8] = static_cast<std::uint8_t>((low[0] & 15) | (high[0] & 15) << 4);
      }
    }
  }
}

KernelFamily few_bits_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
      Kernel{tq1_0, quantize<tq1_0, BlockTQ1_0, quantize_tq1_0>, nullptr},
      Kernel{tq2_0, quantize<tq2_0, BlockTQ2_0, quantize_tq2_0>, nullptr},
      Kernel{q2_0, quantize<q2_0, BlockQ2_0, quantize_q2_0>, nullptr},
      Kernel{mxfp4, quantize<mxfp4, BlockMXFP4, quantize_mxfp4>, nullptr},
      Kernel{nvfp4, quantize<nvfp4, BlockNVFP4, quantize_nvfp4>, nullptr},
      Kernel{q1_0, quantize_q1_0, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(few_bits_kernels, few_bits_family);
} // namespace modeld::quantize
#endif
