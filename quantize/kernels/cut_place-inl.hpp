// SPDX-License-Identifier: Apache-2.0

// From the best cuts of IQ1_S and IQ1_M to points on the grid: levels, shifts and scales with a
// sub-block in each lane; a group that is off the grid looks for its neighbour with a neighbour in
// each lane.

#if defined(MODELD_QUANTIZE_KERNELS_CUT_PLACE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_CUT_PLACE_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_CUT_PLACE_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_CUT_PLACE_INL_HPP
#endif

#include "quantize/kernels/cut_search-inl.hpp"
#include "quantize/kernels/neighbour_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

/// Sixteen sub-blocks from the cut on. Variants have a bit for each half: set where it is shifted
/// by -1/8; IQ1_S has one half.
template <std::size_t Size>
struct alignas(64) Placed {
  static constexpr std::size_t k_groups = Size / 8;
  static constexpr std::size_t k_halves = Size == 16 ? 2 : 1;
  std::int32_t code[k_groups * k_cut_tile];
  std::int32_t minus[k_halves * k_cut_tile]; ///< 0 or 1
  std::int32_t off_grid[k_cut_tile];         ///< whether any group was
  float scale[k_cut_tile];
  bool found[k_cut_tile]; ///< not where the sub-block counts as zero
};

/// Levels of the cuts, as codes; a negative scale turns positive, and all levels with it.
template <std::size_t Size>
HWY_INLINE void place_cuts(const CutTile<Size>& tile, const Cuts& cuts, float eps,
                           Placed<Size>& to) {
  const IntV one = hn::Set(k_i, 1);
  for (std::size_t at = 0; at < k_cut_tile; at += hn::Lanes(k_f)) {
    const IntV first = hn::Load(k_i, cuts.first + at);
    const IntV second = hn::Load(k_i, cuts.second + at);
    const FloatV scale = hn::Load(k_f, cuts.scale + at);
    const auto negative = hn::RebindMask(k_i, hn::Lt(scale, hn::Zero(k_f)));
    FloatV largest = hn::Zero(k_f);
    for (std::size_t k = 0; k < Placed<Size>::k_groups; ++k) {
      IntV code = hn::Zero(k_i);
      for (std::size_t i = 8 * k + 8; i-- > 8 * k;) {
        largest = hn::Max(largest, hn::Abs(hn::Load(k_f, tile.x + i * k_cut_tile + at)));
        const IntV rank = hn::Load(k_i, tile.rank + i * k_cut_tile + at);
        IntV level = hn::IfThenElseZero(hn::Not(hn::Lt(rank, first)), one);
        level = hn::Add(level, hn::IfThenElseZero(hn::Not(hn::Lt(rank, second)), one));
        level = hn::IfThenElse(negative, hn::Sub(hn::Set(k_i, 2), level), level);
        code = hn::Or(hn::ShiftLeft<2>(code), level);
      }
      hn::Store(code, k_i, to.code + k * k_cut_tile + at);
    }
    hn::Store(hn::Abs(scale), k_f, to.scale + at);
    const IntV variant = hn::Load(k_i, cuts.variant + at);
    const IntV flip = hn::IfThenElseZero(negative, one);
    for (std::size_t h = 0; h < Placed<Size>::k_halves; ++h) {
      // Of IQ1_M's four variants the high bit is the first half's.
      IntV minus = variant;
      if (Placed<Size>::k_halves == 2 && h == 0) minus = hn::ShiftRight<1>(variant);
      minus = hn::Xor(hn::And(minus, one), flip);
      hn::Store(minus, k_i, to.minus + h * k_cut_tile + at);
    }
    const auto zero = hn::RebindMask(k_i, hn::Lt(largest, set(eps)));
    const auto none = hn::Or(zero, hn::Lt(variant, hn::Zero(k_i)));
    hn::Store(hn::IfThenElseZero(none, one), k_i, to.off_grid + at);
  }
  for (std::size_t lane = 0; lane < k_cut_tile; ++lane) {
    to.found[lane] = to.off_grid[lane] == 0;
    to.off_grid[lane] = 0;
  }
}

/// Cost of element i at the level that is at its place in each lane's code.
template <std::size_t I>
HWY_INLINE FloatV cost_of(const float* cost, IntV code) {
  const IntV level = hn::And(hn::ShiftRight<2 * I>(code), hn::Set(k_i, 3));
  return hn::TableLookupLanes(hn::Load(k_f, cost + I * k_cut_tile), hn::IndicesFromVec(k_f, level));
}

/// Of the neighbours the one of least weighted error for `scale`, the first of equals. The cost of
/// each level of each element is made once; a neighbour's error is a sum of look-ups.
HWY_INLINE std::uint32_t best_neighbour(NeighbourTable::List list, const float* x,
                                        const float* weights, float scale, float base) {
  const std::size_t lanes = hn::Lanes(k_f);
  const FloatV values = hn::Mul(set(scale), hn::Iota(k_f, base));
  alignas(64) float cost[8 * k_cut_tile];
  for (std::size_t i = 0; i < 8; ++i) {
    const FloatV difference = hn::Sub(values, set(x[i * k_cut_tile]));
    const FloatV w = set(weights[i * k_cut_tile]);
    hn::Store(hn::Mul(hn::Mul(w, difference), difference), k_f, cost + i * k_cut_tile);
  }
  const hn::Rebind<std::uint16_t, Floats> halves;
  FloatV least = set(std::numeric_limits<float>::max());
  IntV best = hn::Zero(k_i);
  IntV at = hn::Iota(k_i, 0);
  for (std::size_t n = 0; n < list.count; n += lanes) {
    const IntV code = hn::PromoteTo(k_i, hn::LoadU(halves, list.codes + n));
    FloatV error = hn::Add(cost_of<0>(cost, code), cost_of<1>(cost, code));
    error = hn::Add(error, cost_of<2>(cost, code));
    error = hn::Add(error, cost_of<3>(cost, code));
    error = hn::Add(error, cost_of<4>(cost, code));
    error = hn::Add(error, cost_of<5>(cost, code));
    error = hn::Add(error, cost_of<6>(cost, code));
    error = hn::Add(error, cost_of<7>(cost, code));
    const FloatM less = hn::Lt(error, least);
    least = hn::IfThenElse(less, error, least);
    best = hn::IfThenElse(hn::RebindMask(k_i, less), at, best);
    at = hn::Add(at, hn::Set(k_i, static_cast<std::int32_t>(lanes)));
  }
  const FloatM equal = hn::Eq(least, hn::MinOfLanes(k_f, least));
  const IntV none = hn::Set(k_i, std::numeric_limits<std::int32_t>::max());
  const IntV first = hn::MinOfLanes(k_i, hn::IfThenElse(hn::RebindMask(k_i, equal), best, none));
  return list.codes[hn::GetLane(first)];
}

template <std::size_t Size>
HWY_INLINE void move_to_points(const CutTile<Size>& tile, Placed<Size>& placed) {
  const NeighbourTable& table = NeighbourTable::iq1();
  for (std::size_t lane = 0; lane < k_cut_tile; ++lane) {
    if (!placed.found[lane]) continue;
    for (std::size_t k = 0; k < Placed<Size>::k_groups; ++k) {
      std::int32_t& code = placed.code[k * k_cut_tile + lane];
      const auto list = table.neighbours(static_cast<std::uint32_t>(code));
      if (list.count == 0) continue;
      const std::size_t half = Placed<Size>::k_halves == 2 ? k : 0;
      const bool minus = placed.minus[half * k_cut_tile + lane] != 0;
      const std::size_t first = 8 * k * k_cut_tile + lane;
      code = static_cast<std::int32_t>(best_neighbour(list, tile.x + first, tile.weight + first,
                                                      placed.scale[lane],
                                                      minus ? k_minus_base : k_plus_base));
      placed.off_grid[lane] = 1;
    }
  }
}

/// Where a group was moved, the scale is fitted again.
template <std::size_t Size>
HWY_INLINE void fit_again(const CutTile<Size>& tile, Placed<Size>& placed) {
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_cut_tile; at += hn::Lanes(k_f)) {
    FloatV qx = zero;
    FloatV q2 = zero;
    for (std::size_t k = 0; k < Placed<Size>::k_groups; ++k) {
      const std::size_t half = Placed<Size>::k_halves == 2 ? k : 0;
      const IntV is_minus = hn::Load(k_i, placed.minus + half * k_cut_tile + at);
      const FloatM minus = hn::RebindMask(k_f, hn::Ne(is_minus, hn::Zero(k_i)));
      const FloatV base = hn::IfThenElse(minus, set(k_minus_base), set(k_plus_base));
      IntV code = hn::Load(k_i, placed.code + k * k_cut_tile + at);
      for (std::size_t i = 8 * k; i < 8 * k + 8; ++i) {
        const IntV level = hn::And(code, hn::Set(k_i, 3));
        code = hn::ShiftRight<2>(code);
        const FloatV q = hn::Add(hn::ConvertTo(k_f, level), base);
        const FloatV wq = hn::Mul(hn::Load(k_f, tile.weight + i * k_cut_tile + at), q);
        qx = hn::Add(qx, hn::Mul(wq, hn::Load(k_f, tile.x + i * k_cut_tile + at)));
        q2 = hn::Add(q2, hn::Mul(wq, q));
      }
    }
    const IntV off_grid = hn::Load(k_i, placed.off_grid + at);
    FloatM fitted = hn::RebindMask(k_f, hn::Ne(off_grid, hn::Zero(k_i)));
    fitted = hn::And(fitted, hn::And(hn::Gt(qx, zero), hn::Gt(q2, zero)));
    const FloatV old = hn::Load(k_f, placed.scale + at);
    hn::Store(hn::IfThenElse(fitted, hn::Div(qx, q2), old), k_f, placed.scale + at);
  }
}

/// Weights: importance times the root of sigma2 plus the square, or without it the square.
template <std::size_t Size>
HWY_INLINE void weigh(CutTile<Size>& tile, bool weighted, const float* sigma2) {
  for (std::size_t at = 0; at < k_cut_tile; at += hn::Lanes(k_f)) {
    const FloatV sigma = hn::Load(k_f, sigma2 + at);
    for (std::size_t i = at; i < Size * k_cut_tile; i += k_cut_tile) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      FloatV w = hn::Mul(x, x);
      if (weighted) w = hn::Mul(hn::Load(k_f, tile.weight + i), hn::Sqrt(hn::Add(sigma, w)));
      hn::Store(w, k_f, tile.weight + i);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
