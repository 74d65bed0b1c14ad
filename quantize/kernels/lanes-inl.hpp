// SPDX-License-Identifier: Apache-2.0

// Vector helpers that the kernel files share; included once for each target, so the guard is
// Highway's toggle and not #pragma once.
//
// The rule of all kernels: a lane does what the scalar definition does, in its order, with the same
// roundings. One lane has one sub-block of weights (or one super-block's scales), so nothing is
// summed across lanes, and a branch becomes a select. Where the definition leaves the ground on
// which the vector code equals it (not finite, too large for the rounding below), the kernel asks
// the scalar function for that block.

#if defined(MODELD_QUANTIZE_KERNELS_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_LANES_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_LANES_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_LANES_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Floats of a lane group. Longer SVE vectors are cut to 16 lanes, so that every tile below is a
/// whole number of vectors on every target.
using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<std::uint8_t, Floats>;
using FloatV = hn::VFromD<Floats>;
using IntV = hn::VFromD<Ints>;
using FloatM = decltype(hn::Lt(FloatV{}, FloatV{}));

inline constexpr Floats k_f{};
inline constexpr Ints k_i{};

/// Sub-blocks in a tile: two vectors of the widest target, four of AVX2. Two vectors go side by
/// side through each loop, since one alone would wait for its own sums.
inline constexpr std::size_t k_tile = 32;

HWY_INLINE FloatV set(float value) {
  return hn::Set(k_f, value);
}

/// 1.5 * 2^23: adding it to a float of magnitude below 2^22 leaves the nearest integer (ties to
/// even) in the low mantissa bits. The definition rounds in this way.
inline constexpr float k_round_magic = 12582912.0F;
/// Up to here the definition's rounding and hn::Round agree.
inline constexpr float k_round_limit = 4194303.0F;

/// The definition's nearest integer, bit for bit, for every input: beyond the limit it is
/// nonsense, but the same nonsense.
HWY_INLINE IntV nearest_int(FloatV value) {
  const IntV bits = hn::BitCast(k_i, hn::Add(value, set(k_round_magic)));
  return hn::Sub(hn::And(bits, hn::Set(k_i, 0x007FFFFF)), hn::Set(k_i, 0x00400000));
}

HWY_INLINE IntV clamp(IntV value, std::int32_t low, std::int32_t high) {
  return hn::Max(hn::Set(k_i, low), hn::Min(hn::Set(k_i, high), value));
}

/// Stores the low byte of each lane.
HWY_INLINE void store_bytes(IntV value, std::uint8_t* to) {
  const hn::RebindToUnsigned<Ints> words;
  hn::StoreU(hn::TruncateTo(Bytes{}, hn::BitCast(words, value)), Bytes{}, to);
}

/// tile[i * Width + lane] = from[lane][i] for i < n. Width and n are multiples of four.
template <std::size_t Width>
HWY_INLINE void transpose(const float* const* from, std::size_t n, float* HWY_RESTRICT tile) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<std::uint64_t, 2> pairs;
  for (std::size_t lane = 0; lane < Width; lane += 4) {
    const float* const a = from[lane];
    const float* const b = from[lane + 1];
    const float* const c = from[lane + 2];
    const float* const e = from[lane + 3];
    for (std::size_t i = 0; i < n; i += 4) {
      const auto va = hn::LoadU(d, a + i);
      const auto vb = hn::LoadU(d, b + i);
      const auto vc = hn::LoadU(d, c + i);
      const auto ve = hn::LoadU(d, e + i);
      const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, va, vb));
      const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, va, vb));
      const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, vc, ve));
      const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, vc, ve));
      float* const to = tile + i * Width + lane;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + Width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * Width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * Width);
    }
  }
}

/// Whether all |x| <= limit; a NaN is not. n is a multiple of 16.
HWY_INLINE bool all_within(const float* x, std::size_t n, float limit) {
  FloatM bad = hn::FirstN(k_f, 0);
  for (std::size_t i = 0; i < n; i += hn::Lanes(k_f)) {
    const FloatM good = hn::Le(hn::Abs(hn::LoadU(k_f, x + i)), set(limit));
    bad = hn::Or(bad, hn::Not(good));
  }
  return hn::AllFalse(k_f, bad);
}

// NOLINTNEXTLINE(google-readability-namespace-comments): Highway's macro is the name
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
