// SPDX-License-Identifier: Apache-2.0

// The search for a scale and a minimum (Q2_K, Q4_K, Q5_K; Q4_1 and Q5_1 with importance), one lane
// for each sub-block. See quantize/reference/ for what it minimizes.

#if defined(MODELD_QUANTIZE_KERNELS_MIN_SEARCH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_MIN_SEARCH_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_MIN_SEARCH_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_MIN_SEARCH_INL_HPP
#endif

#include "quantize/kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

/// The constants of a search: steps s = 0..steps try the inverse scale
/// (first + delta * s + top) / (max - min), and levels are 0..top.
struct MinSearch {
  int top;
  float first;
  float delta;
  int steps;
  bool absolute_error; ///< errors count by magnitude, not by square
};

/// What a search finds, by lane. Levels are those of the best step: clamp(round(inverse * (x -
/// offset))); a lane of equal weights has inverse 0.
struct alignas(64) MinFound {
  float scale[k_tile];
  float negative_min[k_tile]; ///< as the definition returns it: >= 0
  float inverse[k_tile];
  float offset[k_tile];
  float sum_w[k_tile];
  float unsure[k_tile]; ///< not 0: rounding left its limit, ask the scalar code
};

/// A tile in lanes: weight i of sub-block s at [i * k_tile + s].
template <std::size_t N>
struct alignas(64) MinTile {
  float x[N * k_tile];
  float weight[N * k_tile];
  float level[N * k_tile]; ///< scratch
};

/// Sums over the levels of one step, two vectors of sub-blocks.
template <std::size_t N>
struct MinPasses {
  /// level = clamp(round(inverse * (x - low))) of one vector; adds w*l, w*l*l and w*l*x.
  template <bool Cut>
  static HWY_INLINE void add_level(FloatV x, FloatV w, FloatV inverse, FloatV low, FloatV top,
                                   float* HWY_RESTRICT level, FloatV& sum_l, FloatV& sum_l2,
                                   FloatV& sum_xl) {
    const FloatV rounded = hn::Round(hn::Mul(inverse, hn::Sub(x, low)));
    const FloatV l = hn::Max(hn::Zero(k_f), Cut ? hn::Min(top, rounded) : rounded);
    hn::Store(l, k_f, level);
    const FloatV wl = hn::Mul(w, l);
    sum_l = hn::Add(sum_l, wl);
    sum_l2 = hn::Add(sum_l2, hn::Mul(wl, l));
    sum_xl = hn::Add(sum_xl, hn::Mul(wl, x));
  }

  /// add_level for the two vectors at `at`; `Cut`: levels above the top come up.
  template <bool Cut>
  static HWY_INLINE void levels(MinTile<N>& tile, std::size_t at, FloatV top, FloatV inverse_a,
                                FloatV low_a, FloatV inverse_b, FloatV low_b, FloatV& l_a,
                                FloatV& l2_a, FloatV& xl_a, FloatV& l_b, FloatV& l2_b,
                                FloatV& xl_b) {
    for (std::size_t i = at; i < N * k_tile; i += k_tile) {
      const std::size_t j = i + hn::Lanes(k_f);
      add_level<Cut>(hn::Load(k_f, tile.x + i), hn::Load(k_f, tile.weight + i), inverse_a, low_a,
                     top, tile.level + i, l_a, l2_a, xl_a);
      add_level<Cut>(hn::Load(k_f, tile.x + j), hn::Load(k_f, tile.weight + j), inverse_b, low_b,
                     top, tile.level + j, l_b, l2_b, xl_b);
    }
  }

  template <bool Absolute>
  static HWY_INLINE FloatV add_error(FloatV error, FloatV x, FloatV w, FloatV level, FloatV scale,
                                     FloatV low) {
    const FloatV difference = hn::Sub(hn::Add(hn::Mul(scale, level), low), x);
    const FloatV cost = Absolute ? hn::Abs(difference) : hn::Mul(difference, difference);
    return hn::Add(error, hn::Mul(w, cost));
  }

  /// The error of levels in the scratch of the tile, for the two vectors at `at`.
  template <bool Absolute>
  static HWY_INLINE void errors(const MinTile<N>& tile, std::size_t at, FloatV scale_a,
                                FloatV low_a, FloatV scale_b, FloatV low_b, FloatV& error_a,
                                FloatV& error_b) {
    const std::size_t lanes = hn::Lanes(k_f);
    error_a = hn::Zero(k_f);
    error_b = hn::Zero(k_f);
    for (std::size_t i = at; i < N * k_tile; i += k_tile) {
      error_a =
          add_error<Absolute>(error_a, hn::Load(k_f, tile.x + i), hn::Load(k_f, tile.weight + i),
                              hn::Load(k_f, tile.level + i), scale_a, low_a);
      const std::size_t j = i + lanes;
      error_b =
          add_error<Absolute>(error_b, hn::Load(k_f, tile.x + j), hn::Load(k_f, tile.weight + j),
                              hn::Load(k_f, tile.level + j), scale_b, low_b);
    }
  }
};

/// State of one vector of sub-blocks between steps, in memory: SVE vectors cannot be members.
struct alignas(64) MinState {
  float sum_w[16], sum_x[16], min[16], max[16], flat[16];
  float best[16], scale[16], low[16], inverse[16], offset[16], unsure[16];
};

// Values in [min, max] are rounded within the limit if the two ends are, since subtraction and
// multiplication round monotonically.
HWY_INLINE FloatV outside_limit(FloatV inverse, FloatV min, FloatV max, FloatV low) {
  const FloatV limit = set(k_round_limit);
  const FloatM bottom = hn::Le(hn::Abs(hn::Mul(inverse, hn::Sub(min, low))), limit);
  const FloatM top = hn::Le(hn::Abs(hn::Mul(inverse, hn::Sub(max, low))), limit);
  return hn::IfThenElse(hn::And(bottom, top), hn::Zero(k_f), set(1.0F));
}

/// Sums, extremes and the error of the plain scale, which the steps have to beat.
template <std::size_t N>
HWY_INLINE void min_search_begin(const MinTile<N>& tile, std::size_t at, const MinSearch& search,
                                 MinState& state) {
  FloatV min = hn::Load(k_f, tile.x + at);
  FloatV max = min;
  FloatV sum_w = hn::Load(k_f, tile.weight + at);
  FloatV sum_x = hn::Mul(sum_w, min);
  for (std::size_t i = at + k_tile; i < N * k_tile; i += k_tile) {
    const FloatV x = hn::Load(k_f, tile.x + i);
    const FloatV w = hn::Load(k_f, tile.weight + i);
    // Selects, not Min and Max: of two zeros the first one stays, with its sign.
    min = hn::IfThenElse(hn::Lt(x, min), x, min);
    max = hn::IfThenElse(hn::Gt(x, max), x, max);
    sum_w = hn::Add(sum_w, w);
    sum_x = hn::Add(sum_x, hn::Mul(w, x));
  }
  min = hn::IfThenElse(hn::Gt(min, hn::Zero(k_f)), hn::Zero(k_f), min);
  const FloatM flat = hn::Le(max, min);
  const FloatV inverse = hn::Div(set(static_cast<float>(search.top)), hn::Sub(max, min));
  const FloatV scale = hn::Div(set(1.0F), inverse);
  const FloatV top = set(static_cast<float>(search.top));
  FloatV best = hn::Zero(k_f);
  for (std::size_t i = at; i < N * k_tile; i += k_tile) {
    const FloatV x = hn::Load(k_f, tile.x + i);
    const FloatV w = hn::Load(k_f, tile.weight + i);
    const FloatV rounded = hn::Round(hn::Mul(inverse, hn::Sub(x, min)));
    const FloatV l = hn::Max(hn::Zero(k_f), hn::Min(top, rounded));
    best = search.absolute_error
               ? MinPasses<N>::template add_error<true>(best, x, w, l, scale, min)
               : MinPasses<N>::template add_error<false>(best, x, w, l, scale, min);
  }
  hn::Store(sum_w, k_f, state.sum_w);
  hn::Store(sum_x, k_f, state.sum_x);
  hn::Store(min, k_f, state.min);
  hn::Store(max, k_f, state.max);
  hn::Store(hn::IfThenElse(flat, set(1.0F), hn::Zero(k_f)), k_f, state.flat);
  hn::Store(best, k_f, state.best);
  hn::Store(scale, k_f, state.scale);
  hn::Store(min, k_f, state.low);
  hn::Store(inverse, k_f, state.inverse);
  hn::Store(min, k_f, state.offset);
  hn::Store(outside_limit(inverse, min, max, min), k_f, state.unsure);
}

/// The scale and minimum that fit the levels of a step best; `usable` where there are any.
HWY_INLINE FloatM min_search_fit(const MinState& state, FloatV sum_l, FloatV sum_l2, FloatV sum_xl,
                                 FloatV& scale, FloatV& low) {
  const FloatV sum_w = hn::Load(k_f, state.sum_w);
  const FloatV sum_x = hn::Load(k_f, state.sum_x);
  const FloatV determinant = hn::Sub(hn::Mul(sum_w, sum_l2), hn::Mul(sum_l, sum_l));
  const FloatV fit = hn::Div(hn::Sub(hn::Mul(sum_w, sum_xl), hn::Mul(sum_x, sum_l)), determinant);
  const FloatV cut = hn::Div(hn::Sub(hn::Mul(sum_l2, sum_x), hn::Mul(sum_l, sum_xl)), determinant);
  const FloatM above = hn::Gt(cut, hn::Zero(k_f));
  low = hn::IfThenElse(above, hn::Zero(k_f), cut);
  scale = fit;
  // Rare in trained weights, and a division is dear.
  if (HWY_UNLIKELY(!hn::AllFalse(k_f, above))) {
    scale = hn::IfThenElse(above, hn::Div(sum_xl, sum_l2), fit);
  }
  return hn::Gt(determinant, hn::Zero(k_f));
}

HWY_INLINE void min_search_keep(MinState& state, FloatM usable, FloatV error, FloatV scale,
                                FloatV low, FloatV inverse) {
  const FloatV best = hn::Load(k_f, state.best);
  const FloatV old_low = hn::Load(k_f, state.low);
  const FloatM better = hn::And(usable, hn::Lt(error, best));
  hn::Store(hn::IfThenElse(better, error, best), k_f, state.best);
  hn::Store(hn::IfThenElse(better, scale, hn::Load(k_f, state.scale)), k_f, state.scale);
  hn::Store(hn::IfThenElse(better, low, old_low), k_f, state.low);
  hn::Store(hn::IfThenElse(better, inverse, hn::Load(k_f, state.inverse)), k_f, state.inverse);
  hn::Store(hn::IfThenElse(better, old_low, hn::Load(k_f, state.offset)), k_f, state.offset);
}

HWY_INLINE FloatV min_search_inverse(MinState& state, float numerator) {
  const FloatV low = hn::Load(k_f, state.low);
  const FloatV max = hn::Load(k_f, state.max);
  const FloatV inverse = hn::Div(set(numerator), hn::Sub(max, low));
  const FloatV outside = outside_limit(inverse, hn::Load(k_f, state.min), max, low);
  hn::Store(hn::Or(hn::Load(k_f, state.unsure), outside), k_f, state.unsure);
  return inverse;
}

/// One step for the two vectors at `at`.
template <std::size_t N, bool Absolute>
HWY_INLINE void min_search_step(MinTile<N>& tile, std::size_t at, const MinSearch& search,
                                float numerator, MinState& a, MinState& b) {
  const FloatV inverse_a = min_search_inverse(a, numerator);
  const FloatV inverse_b = min_search_inverse(b, numerator);
  const FloatV low_a = hn::Load(k_f, a.low);
  const FloatV low_b = hn::Load(k_f, b.low);
  const FloatV top = set(static_cast<float>(search.top));
  FloatV l_a = hn::Zero(k_f), l2_a = l_a, xl_a = l_a, l_b = l_a, l2_b = l_a, xl_b = l_a;
  // The largest weight has the largest level; below a half above the top it rounds to the top.
  const FloatV half_above = hn::Add(top, set(0.5F));
  const FloatV largest_a = hn::Mul(inverse_a, hn::Sub(hn::Load(k_f, a.max), low_a));
  const FloatV largest_b = hn::Mul(inverse_b, hn::Sub(hn::Load(k_f, b.max), low_b));
  const FloatM inside = hn::And(hn::Lt(largest_a, half_above), hn::Lt(largest_b, half_above));
  if (hn::AllTrue(k_f, inside)) {
    MinPasses<N>::template levels<false>(tile, at, top, inverse_a, low_a, inverse_b, low_b, l_a,
                                         l2_a, xl_a, l_b, l2_b, xl_b);
  } else {
    MinPasses<N>::template levels<true>(tile, at, top, inverse_a, low_a, inverse_b, low_b, l_a,
                                        l2_a, xl_a, l_b, l2_b, xl_b);
  }
  FloatV scale_a, new_low_a, scale_b, new_low_b, error_a, error_b;
  const FloatM usable_a = min_search_fit(a, l_a, l2_a, xl_a, scale_a, new_low_a);
  const FloatM usable_b = min_search_fit(b, l_b, l2_b, xl_b, scale_b, new_low_b);
  MinPasses<N>::template errors<Absolute>(tile, at, scale_a, new_low_a, scale_b, new_low_b, error_a,
                                          error_b);
  min_search_keep(a, usable_a, error_a, scale_a, new_low_a, inverse_a);
  min_search_keep(b, usable_b, error_b, scale_b, new_low_b, inverse_b);
}

HWY_INLINE void min_search_end(const MinState& state, std::size_t at, MinFound& found) {
  const FloatV zero = hn::Zero(k_f);
  const FloatM flat = hn::Gt(hn::Load(k_f, state.flat), zero);
  const FloatV low = hn::IfThenElse(flat, hn::Load(k_f, state.min), hn::Load(k_f, state.low));
  hn::Store(hn::IfThenElse(flat, zero, hn::Load(k_f, state.scale)), k_f, found.scale + at);
  hn::Store(hn::Neg(low), k_f, found.negative_min + at);
  hn::Store(hn::IfThenElse(flat, zero, hn::Load(k_f, state.inverse)), k_f, found.inverse + at);
  hn::Store(hn::IfThenElse(flat, zero, hn::Load(k_f, state.offset)), k_f, found.offset + at);
  hn::Store(hn::Load(k_f, state.sum_w), k_f, found.sum_w + at);
  hn::Store(hn::IfThenElse(flat, zero, hn::Load(k_f, state.unsure)), k_f, found.unsure + at);
}

/// Searches all sub-blocks of a tile. tile.x and tile.weight are filled, and finite.
template <std::size_t N, bool Absolute>
inline HWY_NOINLINE void min_search(MinTile<N>& tile, const MinSearch& search, MinFound& found) {
  const std::size_t lanes = hn::Lanes(k_f);
  const auto top = static_cast<float>(search.top);
  MinState a, b;
  for (std::size_t at = 0; at < k_tile; at += 2 * lanes) {
    min_search_begin(tile, at, search, a);
    min_search_begin(tile, at + lanes, search, b);
    for (int s = 0; s <= search.steps; ++s) {
      const float numerator = search.first + search.delta * static_cast<float>(s) + top;
      min_search_step<N, Absolute>(tile, at, search, numerator, a, b);
    }
    min_search_end(a, at, found);
    min_search_end(b, at + lanes, found);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
