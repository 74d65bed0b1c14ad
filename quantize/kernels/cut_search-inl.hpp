// SPDX-License-Identifier: Apache-2.0

// The search of IQ1_S and IQ1_M for the best cut of a sub-block's sorted weights into three runs
// (reference/iq1.cpp), one lane for each sub-block. Sixteen sub-blocks are a tile.

#if defined(MODELD_QUANTIZE_KERNELS_CUT_SEARCH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_CUT_SEARCH_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_CUT_SEARCH_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_CUT_SEARCH_INL_HPP
#endif

#include "quantize/kernels/blocks-inl.hpp"

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

inline constexpr std::size_t k_cut_tile = 16;

/// The shift of a level is +1/8 or -1/8: level l stands for l + k_plus_base or l + k_minus_base.
inline constexpr float k_cut_shift = 0.125F;
inline constexpr float k_plus_base = -1.0F + k_cut_shift;
inline constexpr float k_minus_base = -1.0F - k_cut_shift;

/// Weight i of the sub-block in a lane at [i * k_cut_tile + lane].
template <std::size_t Size>
struct alignas(64) CutTile {
  float x[Size * k_cut_tile];
  float weight[Size * k_cut_tile];
  std::int32_t rank[Size * k_cut_tile]; ///< place of weight i by value
  float sorted_x[Size * k_cut_tile];    ///< by place
  float sorted_weight[Size * k_cut_tile];
  float second_half[Size * k_cut_tile]; ///< whether the weight at this place is in it: 1 or 0
};

/// The best cut of each lane: level 0 at places before `first`, 1 before `second`, then 2.
struct alignas(64) Cuts {
  float scale[k_cut_tile];
  std::int32_t first[k_cut_tile];
  std::int32_t second[k_cut_tile];
  std::int32_t variant[k_cut_tile]; ///< which shifts, as in the definition; -1: no cut was accepted
};

HWY_INLINE IntV count(IntV rank, FloatM before) {
  return hn::Sub(rank, hn::VecFromMask(k_i, hn::RebindMask(k_i, before)));
}

/// Ranks by counting who comes before; of equal weights the first comes first, as a stable sort
/// has it.
template <std::size_t Size>
HWY_INLINE void rank_tile(CutTile<Size>& tile, std::size_t at) {
  for (std::size_t i = 0; i < Size; i += 2) {
    const FloatV a = hn::Load(k_f, tile.x + i * k_cut_tile + at);
    const FloatV b = hn::Load(k_f, tile.x + (i + 1) * k_cut_tile + at);
    IntV rank_a = count(hn::Zero(k_i), hn::Lt(b, a));
    IntV rank_b = count(hn::Zero(k_i), hn::Le(a, b));
    for (std::size_t j = 0; j < i; ++j) {
      const FloatV other = hn::Load(k_f, tile.x + j * k_cut_tile + at);
      rank_a = count(rank_a, hn::Le(other, a));
      rank_b = count(rank_b, hn::Le(other, b));
    }
    for (std::size_t j = i + 2; j < Size; ++j) {
      const FloatV other = hn::Load(k_f, tile.x + j * k_cut_tile + at);
      rank_a = count(rank_a, hn::Lt(other, a));
      rank_b = count(rank_b, hn::Lt(other, b));
    }
    hn::Store(rank_a, k_i, tile.rank + i * k_cut_tile + at);
    hn::Store(rank_b, k_i, tile.rank + (i + 1) * k_cut_tile + at);
  }
}

template <std::size_t Size>
HWY_INLINE void sort_tile(CutTile<Size>& tile) {
  for (std::size_t at = 0; at < k_cut_tile; at += hn::Lanes(k_f))
    rank_tile(tile, at);
  for (std::size_t i = 0; i < Size; ++i) {
    for (std::size_t lane = 0; lane < k_cut_tile; ++lane) {
      const std::size_t from = i * k_cut_tile + lane;
      const std::size_t to = static_cast<std::size_t>(tile.rank[from]) * k_cut_tile + lane;
      tile.sorted_x[to] = tile.x[from];
      tile.sorted_weight[to] = tile.weight[from];
      if constexpr (Size == 16) tile.second_half[to] = i < Size / 2 ? 0.0F : 1.0F;
    }
  }
}

HWY_INLINE FloatM beats(FloatV qx, FloatV q2, FloatV score) {
  return hn::Gt(hn::Mul(qx, qx), hn::Mul(score, q2));
}

/// Keeps a cut where it explains more than the best so far; `which`: see pack_cut.
HWY_INLINE void offer(FloatV qx, FloatV q2, IntV candidate, FloatV& scale, FloatV& score,
                      IntV& which) {
  const FloatM better = hn::And(hn::Gt(q2, hn::Zero(k_f)), beats(qx, q2, score));
  scale = hn::IfThenElse(better, hn::Div(qx, q2), scale);
  score = hn::IfThenElse(better, hn::Mul(scale, qx), score);
  which = hn::IfThenElse(hn::RebindMask(k_i, better), candidate, which);
}

HWY_INLINE IntV pack_cut(std::size_t first, std::size_t second, std::int32_t variant) {
  return hn::Set(k_i, static_cast<std::int32_t>(first << 16 | second << 8) | variant);
}

HWY_INLINE void store_cut(FloatV scale, IntV which, std::size_t at, Cuts& cuts) {
  const IntV byte = hn::Set(k_i, 255);
  hn::Store(scale, k_f, cuts.scale + at);
  hn::Store(hn::And(hn::ShiftRight<16>(which), byte), k_i, cuts.first + at);
  hn::Store(hn::And(hn::ShiftRight<8>(which), byte), k_i, cuts.second + at);
  const auto none = hn::Lt(which, hn::Zero(k_i));
  hn::Store(hn::IfThenElse(none, which, hn::And(which, byte)), k_i, cuts.variant + at);
}

/// Sums over the sorted row before each place, and what level 2 behind it adds with either shift.
struct alignas(64) CutSums {
  static constexpr std::size_t k_places = 33;
  float x[k_places * k_cut_tile];
  float weight[k_places * k_cut_tile];
  float rest_x[2][k_places * k_cut_tile];
  float rest_weight[2][k_places * k_cut_tile];
};

HWY_INLINE FloatV times(FloatV sum, float value) {
  return hn::Mul(sum, set(value));
}
HWY_INLINE FloatV times_square(FloatV sum, float value) {
  return hn::Mul(hn::Mul(sum, set(value)), set(value));
}

HWY_INLINE void sum_places(const CutTile<32>& tile, std::size_t at, CutSums& sums) {
  FloatV x = hn::Zero(k_f);
  FloatV weight = x;
  for (std::size_t j = 0; j <= 32; ++j) {
    const std::size_t i = j * k_cut_tile + at;
    hn::Store(x, k_f, sums.x + i);
    hn::Store(weight, k_f, sums.weight + i);
    if (j == 32) break;
    const FloatV w = hn::Load(k_f, tile.sorted_weight + i);
    x = hn::Add(x, hn::Mul(w, hn::Load(k_f, tile.sorted_x + i)));
    weight = hn::Add(weight, w);
  }
  for (std::size_t i = at; i < CutSums::k_places * k_cut_tile; i += k_cut_tile) {
    const FloatV rest_x = hn::Sub(x, hn::Load(k_f, sums.x + i));
    const FloatV rest_weight = hn::Sub(weight, hn::Load(k_f, sums.weight + i));
    hn::Store(times(rest_x, 1.0F + k_cut_shift), k_f, sums.rest_x[0] + i);
    hn::Store(times(rest_x, 1.0F - k_cut_shift), k_f, sums.rest_x[1] + i);
    hn::Store(times_square(rest_weight, 1.0F + k_cut_shift), k_f, sums.rest_weight[0] + i);
    hn::Store(times_square(rest_weight, 1.0F - k_cut_shift), k_f, sums.rest_weight[1] + i);
  }
}

/// IQ1_S: one shift for the sub-block, sums from those before each place. Variant 0: +; 1: -.
HWY_NOINLINE void search_cuts(CutTile<32>& tile, Cuts& cuts) {
  sort_tile(tile);
  CutSums sums;
  for (std::size_t at = 0; at < k_cut_tile; at += hn::Lanes(k_f)) {
    sum_places(tile, at, sums);
    FloatV scale = hn::Zero(k_f);
    FloatV score = set(-std::numeric_limits<float>::max());
    IntV which = hn::Set(k_i, -1);
    for (std::size_t i1 = 0; i1 <= 32; ++i1) {
      const FloatV x1 = hn::Load(k_f, sums.x + i1 * k_cut_tile + at);
      const FloatV w1 = hn::Load(k_f, sums.weight + i1 * k_cut_tile + at);
      const FloatV plus_x = times(x1, k_plus_base);
      const FloatV minus_x = times(x1, k_minus_base);
      const FloatV plus_w = times_square(w1, k_plus_base);
      const FloatV minus_w = times_square(w1, k_minus_base);
      for (std::size_t i2 = i1; i2 <= 32; ++i2) {
        const std::size_t i = i2 * k_cut_tile + at;
        // Level 1 stands for the shift itself; with the other one the product changes its sign.
        const FloatV middle_x = times(hn::Sub(hn::Load(k_f, sums.x + i), x1), k_cut_shift);
        const FloatV middle_w =
            times_square(hn::Sub(hn::Load(k_f, sums.weight + i), w1), k_cut_shift);
        const FloatV qx_plus =
            hn::Add(hn::Add(plus_x, middle_x), hn::Load(k_f, sums.rest_x[0] + i));
        const FloatV q2_plus =
            hn::Add(hn::Add(plus_w, middle_w), hn::Load(k_f, sums.rest_weight[0] + i));
        const FloatV qx_minus =
            hn::Add(hn::Sub(minus_x, middle_x), hn::Load(k_f, sums.rest_x[1] + i));
        const FloatV q2_minus =
            hn::Add(hn::Add(minus_w, middle_w), hn::Load(k_f, sums.rest_weight[1] + i));
        // Few cuts are better in any lane. If the first is, the second is asked again.
        const FloatM any = hn::Or(beats(qx_plus, q2_plus, score), beats(qx_minus, q2_minus, score));
        if (hn::AllFalse(k_f, any)) continue;
        offer(qx_plus, q2_plus, pack_cut(i1, i2, 0), scale, score, which);
        offer(qx_minus, q2_minus, pack_cut(i1, i2, 1), scale, score, which);
      }
    }
    store_cut(scale, which, at, cuts);
  }
}

/// What a weight adds to the sums of the four pairs of shifts, by level and place.
struct alignas(64) CutTerms {
  static constexpr std::size_t k_variants = 4; ///< ++, +-, -+, --
  float qx[3][16][k_variants][k_cut_tile];
  float q2[3][16][k_variants][k_cut_tile];
};

/// One term for each variant, from those with either shift.
HWY_INLINE void store_terms(FloatV plus, FloatV minus, FloatM second, std::size_t at,
                            float (&to)[CutTerms::k_variants][k_cut_tile]) {
  hn::Store(plus, k_f, to[0] + at);
  hn::Store(hn::IfThenElse(second, minus, plus), k_f, to[1] + at);
  hn::Store(hn::IfThenElse(second, plus, minus), k_f, to[2] + at);
  hn::Store(minus, k_f, to[3] + at);
}

HWY_INLINE void make_terms(const CutTile<16>& tile, std::size_t at, CutTerms& terms) {
  for (std::size_t level = 0; level < 3; ++level) {
    for (std::size_t j = 0; j < 16; ++j) {
      const FloatV x = hn::Load(k_f, tile.sorted_x + j * k_cut_tile + at);
      const FloatV w = hn::Load(k_f, tile.sorted_weight + j * k_cut_tile + at);
      const FloatV half = hn::Load(k_f, tile.second_half + j * k_cut_tile + at);
      const FloatM second = hn::Ne(half, hn::Zero(k_f));
      const FloatV plus = set(static_cast<float>(level) + k_plus_base);
      const FloatV minus = set(static_cast<float>(level) + k_minus_base);
      const FloatV w_plus = hn::Mul(w, plus);
      const FloatV w_minus = hn::Mul(w, minus);
      store_terms(hn::Mul(w_plus, x), hn::Mul(w_minus, x), second, at, terms.qx[level][j]);
      store_terms(hn::Mul(w_plus, plus), hn::Mul(w_minus, minus), second, at, terms.q2[level][j]);
    }
  }
}

/// Adds the terms of place j at `level` to the four variants' sums of one kind.
HWY_INLINE void add_terms(const float (&terms)[CutTerms::k_variants][k_cut_tile], std::size_t at,
                          FloatV& a, FloatV& b, FloatV& c, FloatV& d) {
  a = hn::Add(a, hn::Load(k_f, terms[0] + at));
  b = hn::Add(b, hn::Load(k_f, terms[1] + at));
  c = hn::Add(c, hn::Load(k_f, terms[2] + at));
  d = hn::Add(d, hn::Load(k_f, terms[3] + at));
}

/// IQ1_M: a shift for each half, sums from the first place on: level 0 before i1 is common to all
/// i2, level 1 up to i2 grows with it, and only level 2 behind is added anew.
HWY_NOINLINE void search_cuts(CutTile<16>& tile, Cuts& cuts) {
  sort_tile(tile);
  CutTerms terms;
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_cut_tile; at += hn::Lanes(k_f)) {
    make_terms(tile, at, terms);
    FloatV scale = zero;
    FloatV score = set(-std::numeric_limits<float>::max());
    IntV which = hn::Set(k_i, -1);
    FloatV low_x0 = zero, low_x1 = zero, low_x2 = zero, low_x3 = zero;
    FloatV low_w0 = zero, low_w1 = zero, low_w2 = zero, low_w3 = zero;
    for (std::size_t i1 = 0; i1 <= 16; ++i1) {
      FloatV mid_x0 = low_x0, mid_x1 = low_x1, mid_x2 = low_x2, mid_x3 = low_x3;
      FloatV mid_w0 = low_w0, mid_w1 = low_w1, mid_w2 = low_w2, mid_w3 = low_w3;
      for (std::size_t i2 = i1; i2 <= 16; ++i2) {
        FloatV x0 = mid_x0, x1 = mid_x1, x2 = mid_x2, x3 = mid_x3;
        FloatV w0 = mid_w0, w1 = mid_w1, w2 = mid_w2, w3 = mid_w3;
        for (std::size_t j = i2; j < 16; ++j) {
          add_terms(terms.qx[2][j], at, x0, x1, x2, x3);
          add_terms(terms.q2[2][j], at, w0, w1, w2, w3);
        }
        const FloatM any = hn::Or(hn::Or(beats(x0, w0, score), beats(x1, w1, score)),
                                  hn::Or(beats(x2, w2, score), beats(x3, w3, score)));
        if (!hn::AllFalse(k_f, any)) {
          offer(x0, w0, pack_cut(i1, i2, 0), scale, score, which);
          offer(x1, w1, pack_cut(i1, i2, 1), scale, score, which);
          offer(x2, w2, pack_cut(i1, i2, 2), scale, score, which);
          offer(x3, w3, pack_cut(i1, i2, 3), scale, score, which);
        }
        if (i2 == 16) break;
        add_terms(terms.qx[1][i2], at, mid_x0, mid_x1, mid_x2, mid_x3);
        add_terms(terms.q2[1][i2], at, mid_w0, mid_w1, mid_w2, mid_w3);
      }
      if (i1 == 16) break;
      add_terms(terms.qx[0][i1], at, low_x0, low_x1, low_x2, low_x3);
      add_terms(terms.q2[0][i1], at, low_w0, low_w1, low_w2, low_w3);
    }
    store_cut(scale, which, at, cuts);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
