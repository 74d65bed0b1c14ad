// SPDX-License-Identifier: Apache-2.0

// The searches for a scale without minimum (Q3_K, Q6_K; Q4_0 and Q5_0 with importance), one lane
// for each sub-block. Levels are -top..top - 1.

#if defined(MODELD_QUANTIZE_KERNELS_SYMMETRIC_SEARCH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_SYMMETRIC_SEARCH_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_SYMMETRIC_SEARCH_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_SYMMETRIC_SEARCH_INL_HPP
#endif

#include "quantize/kernels/blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

/// What a search finds, by lane. The stored level of a weight is base + clamp(round(inverse * x)).
struct alignas(64) SymmetricFound {
  float scale[k_tile];
  float inverse[k_tile]; ///< 0 where all weights are next to zero
  float base[k_tile];    ///< top, and 0 where all weights are next to zero
};

/// A tile in lanes: weight i of sub-block s at [i * k_tile + s].
template <std::size_t N>
struct alignas(64) SymmetricTile {
  float x[N * k_tile];
  float weight[N * k_tile];
  float weighted_x[N * k_tile]; ///< weight * x
};

template <std::size_t N>
HWY_INLINE void multiply_weights(SymmetricTile<N>& tile) {
  for (std::size_t i = 0; i < N * k_tile; i += hn::Lanes(k_f)) {
    const FloatV product = hn::Mul(hn::Load(k_f, tile.weight + i), hn::Load(k_f, tile.x + i));
    hn::Store(product, k_f, tile.weighted_x + i);
  }
}

/// The weight of largest magnitude in each lane, the first of equals; and its magnitude.
template <std::size_t N, std::size_t Width>
HWY_INLINE FloatV first_largest_weight(const float* x) {
  FloatV largest = hn::Zero(k_f);
  FloatV magnitude = hn::Zero(k_f);
  for (std::size_t i = 0; i < N * Width; i += Width) {
    const FloatV v = hn::Load(k_f, x + i);
    const FloatM larger = hn::Gt(hn::Abs(v), magnitude);
    magnitude = hn::IfThenElse(larger, hn::Abs(v), magnitude);
    largest = hn::IfThenElse(larger, v, largest);
  }
  return largest;
}

/// The same by extremes, which is quicker, unless both signs have the magnitude.
template <std::size_t N, std::size_t Width = k_tile>
HWY_INLINE FloatV largest_weight(const float* x, FloatV& magnitude) {
  FloatV max = hn::Load(k_f, x);
  FloatV min = max;
  for (std::size_t i = Width; i < N * Width; i += Width) {
    const FloatV v = hn::Load(k_f, x + i);
    max = hn::Max(max, v);
    min = hn::Min(min, v);
  }
  magnitude = hn::Abs(hn::Max(max, hn::Neg(min)));
  const FloatM both = hn::And(hn::Eq(max, hn::Neg(min)), hn::Gt(magnitude, hn::Zero(k_f)));
  if (HWY_UNLIKELY(!hn::AllFalse(k_f, both))) return first_largest_weight<N, Width>(x);
  return hn::IfThenElse(hn::Eq(max, magnitude), max, min);
}

/// Adds w*x*l and w*l*l for the level of inverse * x. The product stays within top + 1, since no
/// weight is larger than the one that `inverse` was made of, so Round is the definition's rounding.
HWY_INLINE void add_symmetric(const float* HWY_RESTRICT x, const float* HWY_RESTRICT weight,
                              const float* HWY_RESTRICT weighted_x, FloatV inverse, FloatV bottom,
                              FloatV top, FloatV& sum_lx, FloatV& sum_l2) {
  const FloatV rounded = hn::Round(hn::Mul(inverse, hn::Load(k_f, x)));
  const FloatV l = hn::Max(bottom, hn::Min(top, rounded));
  sum_lx = hn::Add(sum_lx, hn::Mul(hn::Load(k_f, weighted_x), l));
  sum_l2 = hn::Add(sum_l2, hn::Mul(hn::Mul(hn::Load(k_f, weight), l), l));
}

/// Sums of the levels for one inverse scale, two vectors of sub-blocks.
template <std::size_t N>
HWY_INLINE void symmetric_sums(const SymmetricTile<N>& tile, std::size_t at, int levels,
                               FloatV inverse_a, FloatV inverse_b, FloatV& lx_a, FloatV& l2_a,
                               FloatV& lx_b, FloatV& l2_b) {
  const FloatV bottom = set(static_cast<float>(-levels));
  const FloatV top = set(static_cast<float>(levels - 1));
  lx_a = l2_a = lx_b = l2_b = hn::Zero(k_f);
  for (std::size_t i = at; i < N * k_tile; i += k_tile) {
    const std::size_t j = i + hn::Lanes(k_f);
    add_symmetric(tile.x + i, tile.weight + i, tile.weighted_x + i, inverse_a, bottom, top, lx_a,
                  l2_a);
    add_symmetric(tile.x + j, tile.weight + j, tile.weighted_x + j, inverse_b, bottom, top, lx_b,
                  l2_b);
  }
}

HWY_INLINE void keep_better(FloatV sum_lx, FloatV sum_l2, FloatV candidate, FloatV& scale,
                            FloatV& best, FloatV& inverse) {
  const FloatM larger = hn::Gt(hn::Mul(sum_lx, sum_lx), hn::Mul(best, sum_l2));
  const FloatM better = hn::And(hn::Gt(sum_l2, hn::Zero(k_f)), larger);
  scale = hn::IfThenElse(better, hn::Div(sum_lx, sum_l2), scale);
  best = hn::IfThenElse(better, hn::Mul(scale, sum_lx), best);
  inverse = hn::IfThenElse(better, candidate, inverse);
}

HWY_INLINE void store_symmetric(SymmetricFound& found, std::size_t at, int levels, FloatM tiny,
                                FloatV scale, FloatV inverse) {
  const FloatV zero = hn::Zero(k_f);
  hn::Store(hn::IfThenElse(tiny, zero, scale), k_f, found.scale + at);
  hn::Store(hn::IfThenElse(tiny, zero, inverse), k_f, found.inverse + at);
  hn::Store(hn::IfThenElse(tiny, zero, set(static_cast<float>(levels))), k_f, found.base + at);
}

/// The plain inverse scale first, then eighteen around it.
template <std::size_t N>
inline HWY_NOINLINE void symmetric_search(const SymmetricTile<N>& tile, int levels,
                                          SymmetricFound& found) {
  const std::size_t lanes = hn::Lanes(k_f);
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_tile; at += 2 * lanes) {
    FloatV size_a, size_b, lx_a, l2_a, lx_b, l2_b;
    const FloatV max_a = largest_weight<N>(tile.x + at, size_a);
    const FloatV max_b = largest_weight<N>(tile.x + at + lanes, size_b);
    FloatV inverse_a = hn::Div(set(static_cast<float>(-levels)), max_a);
    FloatV inverse_b = hn::Div(set(static_cast<float>(-levels)), max_b);
    symmetric_sums<N>(tile, at, levels, inverse_a, inverse_b, lx_a, l2_a, lx_b, l2_b);
    FloatV scale_a = hn::IfThenElse(hn::Ne(l2_a, zero), hn::Div(lx_a, l2_a), zero);
    FloatV scale_b = hn::IfThenElse(hn::Ne(l2_b, zero), hn::Div(lx_b, l2_b), zero);
    FloatV best_a = hn::Mul(scale_a, lx_a);
    FloatV best_b = hn::Mul(scale_b, lx_b);
    for (int s = -9; s <= 9; ++s) {
      if (s == 0) continue;
      const FloatV numerator = set(-(static_cast<float>(levels) + 0.1F * static_cast<float>(s)));
      const FloatV candidate_a = hn::Div(numerator, max_a);
      const FloatV candidate_b = hn::Div(numerator, max_b);
      symmetric_sums<N>(tile, at, levels, candidate_a, candidate_b, lx_a, l2_a, lx_b, l2_b);
      keep_better(lx_a, l2_a, candidate_a, scale_a, best_a, inverse_a);
      keep_better(lx_b, l2_b, candidate_b, scale_b, best_b, inverse_b);
    }
    const FloatV tiny = set(k_tiny_group);
    store_symmetric(found, at, levels, hn::Lt(size_a, tiny), scale_a, inverse_a);
    store_symmetric(found, at + lanes, levels, hn::Lt(size_b, tiny), scale_b, inverse_b);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
