// SPDX-License-Identifier: Apache-2.0

// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 without importance: a block needs its extremes and one pass, at
// the speed of memory. Extremes do not depend on order, so vectors have consecutive weights.
// Sixteen blocks go through each step before the next one: the steps of one block wait for each
// other.

#if defined(MODELD_QUANTIZE_KERNELS_LEGACY_PLAIN_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_LEGACY_PLAIN_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_LEGACY_PLAIN_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_LEGACY_PLAIN_INL_HPP
#endif

#include "quantize/kernels/legacy_blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

inline constexpr std::size_t k_group = 16; ///< blocks that go through the steps together

using Four = hn::FixedTag<float, 4>;
using FourV = hn::VFromD<Four>;

/// What extremes are found in. The folding below needs a length known to the compiler.
#if HWY_HAVE_SCALABLE
using Wide = Four;
#else
using Wide = Floats;
#endif
using WideV = hn::VFromD<Wide>;

/// Of each block of a group.
struct Extremes {
  alignas(64) float max[k_group];
  alignas(64) float min[k_group];
};

struct MaxOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Max(a, b);
  }
};
struct MinOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Min(a, b);
  }
};

/// Reduces groups of four lanes to one of them.
template <class Reduce, class D>
HWY_INLINE FourV fold(D /*tag*/, hn::VFromD<D> v) {
  if constexpr (hn::MaxLanes(D{}) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold<Reduce>(half, Reduce{}(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

/// The results of Reduce over each of the four vectors.
template <class Reduce>
HWY_INLINE FourV reduce_four(WideV a, WideV b, WideV c, WideV e) {
  const Reduce reduce;
  const Wide d;
  const hn::Repartition<std::uint64_t, Wide> pairs;
  const WideV ab = reduce(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const WideV ce = reduce(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab_pairs = hn::BitCast(pairs, ab);
  const auto ce_pairs = hn::BitCast(pairs, ce);
  return fold<Reduce>(d, reduce(hn::BitCast(d, hn::InterleaveLower(pairs, ab_pairs, ce_pairs)),
                                hn::BitCast(d, hn::InterleaveUpper(pairs, ab_pairs, ce_pairs))));
}

/// Extremes of one block, still in lanes; `zero` stays zero where all weights are finite and is a
/// NaN where one is not.
HWY_INLINE void block_extremes(const float* x, WideV& max, WideV& min, WideV& zero) {
  const Wide d;
  max = min = hn::LoadU(d, x);
  zero = hn::MulAdd(max, hn::Zero(d), zero);
  for (std::size_t i = hn::Lanes(d); i < k_block; i += hn::Lanes(d)) {
    const WideV v = hn::LoadU(d, x + i);
    max = hn::Max(max, v);
    min = hn::Min(min, v);
    zero = hn::MulAdd(v, hn::Zero(d), zero);
  }
}

/// False where a weight is not finite.
HWY_INLINE bool find_extremes(const float* const* x, Extremes& out) {
  const Wide d;
  WideV max_a, max_b, max_c, max_e, min_a, min_b, min_c, min_e;
  WideV zero = hn::Zero(d), other_zero = hn::Zero(d); // two, so that neither waits for its own sums
  for (std::size_t b = 0; b < k_group; b += 4) {
    block_extremes(x[b], max_a, min_a, zero);
    block_extremes(x[b + 1], max_b, min_b, other_zero);
    block_extremes(x[b + 2], max_c, min_c, zero);
    block_extremes(x[b + 3], max_e, min_e, other_zero);
    hn::Store(reduce_four<MaxOf>(max_a, max_b, max_c, max_e), Four{}, out.max + b);
    hn::Store(reduce_four<MinOf>(min_a, min_b, min_c, min_e), Four{}, out.min + b);
  }
  return hn::AllTrue(d, hn::Eq(hn::Add(zero, other_zero), hn::Zero(d)));
}

/// Of each block of a group: the scale and its inverse, what is subtracted from weights before.
struct Scales {
  alignas(64) float inverse[k_group];
  alignas(64) float min[k_group];
  std::uint16_t d_half[k_group];
  std::uint16_t min_half[k_group];
};

HWY_INLINE void store_halves(FloatV value, std::uint16_t* to) {
  const hn::Rebind<hwy::float16_t, Floats> halves;
  const hn::Rebind<std::uint16_t, Floats> words;
  hn::StoreU(hn::BitCast(words, hn::DemoteTo(halves, value)), words, to);
}

HWY_INLINE void store_scales(FloatV d, std::size_t at, Scales& out) {
  const FloatV zero = hn::Zero(k_f);
  const FloatM none = hn::Eq(d, zero);
  hn::Store(hn::IfThenElse(none, zero, hn::Div(set(1.0F), d)), k_f, out.inverse + at);
  store_halves(d, out.d_half + at);
}

/// Inside these bounds inverses are finite and levels stay in their range, so that conversions to
/// integers need no care. Groups with a block outside go to the scalar code.
inline constexpr float k_least_spread = 1e-30F;
inline constexpr float k_largest_weight = 1e30F;

HWY_INLINE bool is_ordinary(FloatV spread, FloatV magnitude) {
  const FloatM wide = hn::Or(hn::Ge(spread, set(k_least_spread)), hn::Eq(spread, hn::Zero(k_f)));
  return hn::AllTrue(k_f, hn::And(wide, hn::Le(magnitude, set(k_largest_weight))));
}

/// Abs, since of two zeros either one may be the larger.
HWY_INLINE FloatV magnitude_of(FloatV max, FloatV min) {
  return hn::Abs(hn::Max(max, hn::Neg(min)));
}

/// Value of largest magnitude, the first of equals, as the sign of the scale depends on it.
HWY_INLINE float first_largest(const float* x, float magnitude) {
  std::size_t i = 0;
  while (i + 1 < k_block && std::fabs(x[i]) != magnitude)
    ++i;
  return x[i];
}

/// Scales with the largest weight at level -Levels; no minimum. False where one is not ordinary.
template <int Levels>
HWY_INLINE bool symmetric_scales(const float* const* x, const Extremes& extremes, Scales& out) {
  for (std::size_t at = 0; at < k_group; at += hn::Lanes(k_f)) {
    const FloatV max = hn::Load(k_f, extremes.max + at);
    const FloatV min = hn::Load(k_f, extremes.min + at);
    const FloatV magnitude = magnitude_of(max, min);
    if (!is_ordinary(magnitude, magnitude)) return false;
    FloatV largest = hn::IfThenElse(hn::Eq(max, magnitude), max, min);
    const FloatM both = hn::And(hn::Eq(max, magnitude), hn::Eq(hn::Neg(min), magnitude));
    if (HWY_UNLIKELY(!hn::AllFalse(k_f, both))) {
      alignas(64) float first[k_group];
      for (std::size_t b = at; b < at + hn::Lanes(k_f); ++b) {
        const float size = std::max(extremes.max[b], -extremes.min[b]);
        first[b] = size == 0.0F ? 0.0F : first_largest(x[b], size);
      }
      largest = hn::Load(k_f, first + at);
    }
    store_scales(hn::Div(largest, set(static_cast<float>(-Levels))), at, out);
  }
  return true;
}

/// Scales with the least weight at level 0 and the largest at Top. False where one is not ordinary.
template <int Top>
HWY_INLINE bool min_scales(const float* const* x, const Extremes& extremes, Scales& out) {
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_group; at += hn::Lanes(k_f)) {
    const FloatV max = hn::Load(k_f, extremes.max + at);
    FloatV min = hn::Load(k_f, extremes.min + at);
    if (!is_ordinary(hn::Sub(max, min), magnitude_of(max, min))) return false;
    hn::Store(min, k_f, out.min + at);
    if (HWY_UNLIKELY(!hn::AllFalse(k_f, hn::Eq(min, zero)))) {
      // Of zeros the first one stays, and the file has its sign.
      for (std::size_t b = at; b < at + hn::Lanes(k_f); ++b) {
        if (out.min[b] == 0.0F) out.min[b] = *std::find(x[b], x[b] + k_block, 0.0F);
      }
      min = hn::Load(k_f, out.min + at);
    }
    store_halves(min, out.min_half + at);
    const FloatV spread = hn::Sub(max, min);
    // Two zeros of different sign must not make a negative one.
    const FloatV positive = hn::IfThenElse(hn::Eq(spread, zero), zero, spread);
    store_scales(hn::Div(positive, set(static_cast<float>(Top))), at, out);
  }
  return true;
}

/// Levels 0..top of weights i, i + 1, ...: min(top, trunc((x - min) * inverse + half)), which is
/// not negative. In the low bits of the lanes, where adding 2^23 leaves them.
template <class Type>
HWY_INLINE IntV truncated_level(const float* x, FloatV min, FloatV inverse, FloatV half) {
  FloatV v = hn::LoadU(k_f, x);
  if constexpr (Type::k_has_min) v = hn::Sub(v, min);
  v = hn::Add(hn::Mul(v, inverse), half);
  v = hn::Trunc(hn::Min(v, set(static_cast<float>(Type::k_top))));
  return hn::BitCast(k_i, hn::Add(v, set(8388608.0F)));
}

/// A group, of which `count` blocks are written. False where one is not ordinary.
template <class Type>
HWY_INLINE bool quantize_group(const float* const* x, std::size_t count, std::uint8_t* out) {
  Extremes extremes;
  Scales scales;
  if (!find_extremes(x, extremes)) return false;
  if constexpr (Type::k_has_min) {
    if (!min_scales<Type::k_top>(x, extremes, scales)) return false;
  } else {
    if (!symmetric_scales<Type::k_levels>(x, extremes, scales)) return false;
  }
  const FloatV half = set(Type::k_has_min ? 0.5F : static_cast<float>(Type::k_levels) + 0.5F);
  for (std::size_t b = 0; b < count; ++b) {
    const FloatV inverse = set(scales.inverse[b]);
    const FloatV min = Type::k_has_min ? set(scales.min[b]) : hn::Zero(k_f);
    const auto level = [&](std::size_t i)
                           HWY_ATTR { return truncated_level<Type>(x[b] + i, min, inverse, half); };
    pack_block<Type>(scales.d_half[b], scales.min_half[b], level, out + b * Type::k_bytes);
  }
  return true;
}

struct Q80 {
  static constexpr TensorType k_type = TensorType::q8_0;
  static constexpr std::size_t k_bytes = 34;
};

/// Halves go away from zero. Adding the float below one half does it: one half itself would round
/// the float below one half up.
HWY_INLINE IntV round_away(FloatV v) {
  const FloatV half = hn::CopySign(set(0.49999997F), v);
  return hn::ConvertTo(k_i, hn::Add(v, half));
}

template <>
HWY_INLINE bool quantize_group<Q80>(const float* const* x, std::size_t count, std::uint8_t* out) {
  Extremes extremes;
  Scales scales;
  if (!find_extremes(x, extremes)) return false;
  for (std::size_t at = 0; at < k_group; at += hn::Lanes(k_f)) {
    const FloatV magnitude =
        magnitude_of(hn::Load(k_f, extremes.max + at), hn::Load(k_f, extremes.min + at));
    if (!is_ordinary(magnitude, magnitude)) return false;
    store_scales(hn::Div(magnitude, set(127.0F)), at, scales);
  }
  const hn::Rebind<std::int8_t, Floats> signed_bytes;
  for (std::size_t b = 0; b < count; ++b) {
    std::uint8_t* const to = out + b * Q80::k_bytes;
    std::memcpy(to, &scales.d_half[b], 2);
    const FloatV inverse = set(scales.inverse[b]);
    for (std::size_t i = 0; i < k_block; i += hn::Lanes(k_f)) {
      const IntV level = round_away(hn::Mul(hn::LoadU(k_f, x[b] + i), inverse));
      hn::StoreU(hn::DemoteTo(signed_bytes, level), signed_bytes,
                 reinterpret_cast<std::int8_t*>(to + 2 + i));
    }
  }
  return true;
}

template <class Type>
void quantize_plain(const float* in, std::uint64_t blocks, std::uint8_t* out) {
  for (std::uint64_t first = 0; first < blocks; first += k_group) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_group, blocks - first));
    const float* x[k_group];
    for (std::size_t b = 0; b < k_group; ++b)
      x[b] = in + (first + std::min(b, count - 1)) * k_block;
    std::uint8_t* const to = out + first * Type::k_bytes;
    if (HWY_LIKELY(quantize_group<Type>(x, count, to))) continue;
    scalar_codec(Type::k_type)
        .quantize(x[0], 1, count * k_block, nullptr, reinterpret_cast<std::byte*>(to));
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
