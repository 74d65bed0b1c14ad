// SPDX-License-Identifier: Apache-2.0

// The search for a scale with levels from 0 on (for the scales and minima of a super-block with
// importance, and where IQ2_XXS begins), one lane for each set of values.

#if defined(MODELD_QUANTIZE_KERNELS_SCALE_SEARCH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_SCALE_SEARCH_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_SCALE_SEARCH_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_SCALE_SEARCH_INL_HPP
#endif

#include "quantize/kernels/blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

/// Sixteen sets in lanes: value i of set s at [i * k_batch + s].
template <std::size_t Values = 16>
struct alignas(64) ScaleTile {
  float x[Values * k_batch];      ///< >= 0; a level below 0 wraps, as a byte does
  float weight[Values * k_batch]; ///< of each value
  std::int32_t level[Values * k_batch];
  float scale[k_batch];
};

/// A level is a byte in the definition.
HWY_INLINE IntV wrap_level(IntV level) {
  return hn::And(level, hn::Set(k_i, 0xFF));
}

/// The squared error of levels min(top, round(inverse * x)) with scale 1 / inverse. The first
/// candidate's levels are bytes, and not above top by themselves.
template <bool First, std::size_t Values>
HWY_INLINE FloatV scale_search_error(const ScaleTile<Values>& tile, std::size_t at, std::size_t n,
                                     std::int32_t top, FloatV inverse) {
  const FloatV scale = hn::Div(set(1.0F), inverse);
  FloatV error = hn::Zero(k_f);
  for (std::size_t i = at; i < n * k_batch; i += k_batch) {
    const FloatV x = hn::Load(k_f, tile.x + i);
    const IntV nearest = nearest_int(hn::Mul(inverse, x));
    const IntV level = First ? wrap_level(nearest) : hn::Min(hn::Set(k_i, top), nearest);
    const FloatV difference = hn::Sub(x, hn::Mul(scale, hn::ConvertTo(k_f, level)));
    const FloatV w = hn::Load(k_f, tile.weight + i);
    error = hn::Add(error, hn::Mul(hn::Mul(w, difference), difference));
  }
  return error;
}

/// One try to move each level by itself; whether any lane moved one.
template <std::size_t Values>
HWY_INLINE bool scale_search_refine(ScaleTile<Values>& tile, std::size_t at, std::size_t n,
                                    std::int32_t top, FloatV& sum_lx, FloatV& sum_l2) {
  const FloatV zero = hn::Zero(k_f);
  FloatM any = hn::FirstN(k_f, 0);
  for (std::size_t i = at; i < n * k_batch; i += k_batch) {
    const FloatV x = hn::Load(k_f, tile.x + i);
    const FloatV w = hn::Load(k_f, tile.weight + i);
    const FloatV wx = hn::Mul(w, x);
    const IntV old_level = hn::Load(k_i, tile.level + i);
    const FloatV old_l = hn::ConvertTo(k_f, old_level);
    FloatV lx = hn::Sub(sum_lx, hn::Mul(wx, old_l));
    FloatV l2 = hn::Sub(sum_l2, hn::Mul(hn::Mul(w, old_l), old_l));
    const FloatM positive = hn::And(hn::Gt(lx, zero), hn::Gt(l2, zero));
    const IntV nearest = nearest_int(hn::Div(hn::Mul(x, l2), lx));
    const IntV new_level = hn::Min(hn::Set(k_i, top), nearest);
    const FloatM moved = hn::And(positive, hn::RebindMask(k_f, hn::Ne(new_level, old_level)));
    if (hn::AllFalse(k_f, moved)) continue;
    const FloatV new_l = hn::ConvertTo(k_f, new_level);
    lx = hn::Add(lx, hn::Mul(wx, new_l));
    l2 = hn::Add(l2, hn::Mul(hn::Mul(w, new_l), new_l));
    const FloatV left = hn::Mul(hn::Mul(lx, lx), sum_l2);
    const FloatV right = hn::Mul(hn::Mul(sum_lx, sum_lx), l2);
    const FloatM better = hn::And(moved, hn::Gt(left, right));
    const IntV kept = hn::IfThenElse(hn::RebindMask(k_i, better), wrap_level(new_level), old_level);
    hn::Store(kept, k_i, tile.level + i);
    sum_lx = hn::IfThenElse(better, lx, sum_lx);
    sum_l2 = hn::IfThenElse(better, l2, sum_l2);
    any = hn::Or(any, better);
  }
  return !hn::AllFalse(k_f, any);
}

template <std::size_t Values>
HWY_INLINE FloatV scale_search_inverse(const ScaleTile<Values>& tile, std::size_t at, std::size_t n,
                                       std::int32_t top, FloatV max) {
  FloatV inverse = hn::Div(set(static_cast<float>(top)), max);
  FloatV best = scale_search_error<true>(tile, at, n, top, inverse);
  for (int s = -4; s <= 4; ++s) {
    if (s == 0) continue;
    const float numerator = 0.1F * static_cast<float>(s) + static_cast<float>(top);
    const FloatV candidate = hn::Div(set(numerator), max);
    const FloatV error = scale_search_error<false>(tile, at, n, top, candidate);
    const FloatM better = hn::Lt(error, best);
    best = hn::IfThenElse(better, error, best);
    inverse = hn::IfThenElse(better, candidate, inverse);
  }
  return inverse;
}

/// Finds tile.level and tile.scale out of n values in x and weight.
template <std::size_t Values>
HWY_NOINLINE void scale_search(ScaleTile<Values>& tile, std::size_t n, std::int32_t top) {
  constexpr int k_tries = 5; // as the reference
  for (std::size_t at = 0; at < k_batch; at += hn::Lanes(k_f)) {
    const FloatV zero = hn::Zero(k_f);
    FloatV max = zero;
    for (std::size_t i = at; i < n * k_batch; i += k_batch) {
      max = hn::Max(max, hn::Load(k_f, tile.x + i));
    }
    const FloatM tiny = hn::Lt(max, set(k_tiny_group));
    const FloatV inverse = scale_search_inverse(tile, at, n, top, max);
    FloatV sum_lx = zero;
    FloatV sum_l2 = zero;
    for (std::size_t i = at; i < n * k_batch; i += k_batch) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      const FloatV w = hn::Load(k_f, tile.weight + i);
      const IntV level = hn::Min(hn::Set(k_i, top), nearest_int(hn::Mul(inverse, x)));
      hn::Store(wrap_level(level), k_i, tile.level + i);
      const FloatV l = hn::ConvertTo(k_f, level);
      sum_lx = hn::Add(sum_lx, hn::Mul(hn::Mul(w, x), l));
      sum_l2 = hn::Add(sum_l2, hn::Mul(hn::Mul(w, l), l));
    }
    for (int t = 0; t < k_tries; ++t) {
      if (!scale_search_refine(tile, at, n, top, sum_lx, sum_l2)) break;
    }
    const FloatM found = hn::AndNot(tiny, hn::Gt(sum_l2, zero));
    hn::Store(hn::IfThenElse(found, hn::Div(sum_lx, sum_l2), zero), k_f, tile.scale + at);
    const auto tiny_i = hn::RebindMask(k_i, tiny);
    for (std::size_t i = at; i < n * k_batch; i += k_batch) {
      const IntV level = hn::Load(k_i, tile.level + i);
      hn::Store(hn::IfThenElse(tiny_i, hn::Zero(k_i), level), k_i, tile.level + i);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
