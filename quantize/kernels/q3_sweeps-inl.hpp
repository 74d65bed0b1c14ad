// SPDX-License-Identifier: Apache-2.0

// The search of Q3_K without importance, which moves one level after the other until none gets
// better: in lanes, a sub-block in each.

#if defined(MODELD_QUANTIZE_KERNELS_Q3_SWEEPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_Q3_SWEEPS_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_Q3_SWEEPS_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_Q3_SWEEPS_INL_HPP
#endif

#include "quantize/kernels/symmetric_blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

inline constexpr std::int32_t k_q3_levels = 4; ///< of each sign

/// The level of the plain inverse scale; no product is below the bottom, which `inverse` is made
/// of.
HWY_INLINE FloatV first_level(FloatV x, FloatV inverse) {
  return hn::Min(set(static_cast<float>(k_q3_levels - 1)), hn::Round(hn::Mul(inverse, x)));
}

/// Adds w*x*l and w*l*l, w being x*x.
HWY_INLINE void add_level(FloatV x, FloatV l, FloatV& sum_lx, FloatV& sum_l2) {
  const FloatV w = hn::Mul(x, x);
  sum_lx = hn::Add(sum_lx, hn::Mul(hn::Mul(w, x), l));
  sum_l2 = hn::Add(sum_l2, hn::Mul(hn::Mul(w, l), l));
}

/// The start of the search: levels of the plain inverse scale. `found` gets their best scale,
/// `lx` and `l2` the sums that it is made of.
HWY_INLINE void first_scales(const Tile& tile, SymmetricFound& found, float* lx, float* l2) {
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    FloatV size;
    const FloatV largest = largest_weight<k_sub>(tile.x + at, size);
    const FloatV inverse = hn::Div(set(static_cast<float>(-k_q3_levels)), largest);
    FloatV sum_lx = zero, sum_l2 = zero;
    for (std::size_t i = at; i < k_sub * k_tile; i += k_tile) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      add_level(x, first_level(x, inverse), sum_lx, sum_l2);
    }
    hn::Store(sum_lx, k_f, lx + at);
    hn::Store(sum_l2, k_f, l2 + at);
    const FloatV scale = hn::IfThenElse(hn::Gt(sum_l2, zero), hn::Div(sum_lx, sum_l2), zero);
    store_symmetric(found, at, k_q3_levels, hn::Lt(size, set(k_tiny_group)), scale, inverse);
  }
}

/// Lanes of a column: those of the widest vector. Narrower ones take it in parts.
inline constexpr std::size_t k_column = 16;

/// Sub-blocks in lanes whose levels sweeps may move; weight i of lane s at [i * k_column + s].
struct alignas(64) Column {
  float x[k_sub * k_column];
  float level[k_sub * k_column];
  // What follows from level: the parts of the sums, and bounds, as quotients, within which it
  // surely stays.
  float lx[k_sub * k_column];
  float l2[k_sub * k_column];
  float low[k_sub * k_column];
  float high[k_sub * k_column];
  float inverse[k_column];
  float sum_lx[k_column]; ///< before the first sweep
  float sum_l2[k_column];
  float scale[k_column];
};

/// Sums below this lose bits in products.
inline constexpr float k_least_sum = 1e-30F;

/// The lanes in which a level may move in the first sweep; no others ever do. The quotient
/// x * (l2 - x^2 l^2) / (lx - x^3 l) is nearest to l where |x l2 - l lx| is less than half of the
/// divisor. The margin is more than the roundings of the definition can make, as long as the rest
/// of the sum is not all but gone.
HWY_INLINE FloatM may_move(const Column& column, std::size_t at) {
  const FloatV inverse = hn::Load(k_f, column.inverse + at);
  const FloatV sum_lx = hn::Load(k_f, column.sum_lx + at);
  const FloatV sum_l2 = hn::Load(k_f, column.sum_l2 + at);
  const FloatV bottom = hn::Mul(sum_lx, set(static_cast<float>(-k_q3_levels)));
  const FloatV top = hn::Mul(sum_lx, set(static_cast<float>(k_q3_levels - 1)));
  const FloatV least = hn::Mul(sum_lx, set(0.01F));
  FloatM stays = hn::Ge(sum_lx, set(k_least_sum));
  for (std::size_t i = at; i < k_sub * k_column; i += k_column) {
    const FloatV x = hn::Load(k_f, column.x + i);
    const FloatV l = first_level(x, inverse);
    const FloatV divisor = hn::Sub(sum_lx, hn::Mul(hn::Mul(hn::Mul(x, x), x), l));
    const FloatV wanted = hn::Min(top, hn::Max(bottom, hn::Mul(x, sum_l2)));
    const FloatV distance = hn::Abs(hn::Sub(wanted, hn::Mul(l, sum_lx)));
    stays = hn::And(stays, hn::Le(distance, hn::Mul(divisor, set(0.499F))));
    stays = hn::And(stays, hn::Ge(divisor, least));
  }
  return hn::Not(stays);
}

/// What follows from the levels that the first sweep left.
HWY_INLINE void bound_level(Column& column, std::size_t i) {
  constexpr float k_beyond_any = 1e30F;
  constexpr float k_nearly_half = 0.4999F; // the rest is more than roundings can make
  const FloatV x = hn::Load(k_f, column.x + i);
  const FloatV l = hn::Load(k_f, column.level + i);
  const FloatV w = hn::Mul(x, x);
  const FloatM lowest = hn::Eq(l, set(static_cast<float>(-k_q3_levels)));
  const FloatM highest = hn::Eq(l, set(static_cast<float>(k_q3_levels - 1)));
  const FloatV low = hn::IfThenElse(lowest, set(-k_beyond_any), hn::Sub(l, set(k_nearly_half)));
  const FloatV high = hn::IfThenElse(highest, set(k_beyond_any), hn::Add(l, set(k_nearly_half)));
  hn::Store(hn::Mul(hn::Mul(w, x), l), k_f, column.lx + i);
  hn::Store(hn::Mul(hn::Mul(w, l), l), k_f, column.l2 + i);
  hn::Store(low, k_f, column.low + i);
  hn::Store(high, k_f, column.high + i);
}

/// One try for a weight; the lanes whose level moved.
HWY_INLINE FloatM try_level(Column& column, std::size_t i, FloatV& sum_lx, FloatV& sum_l2) {
  const FloatV zero = hn::Zero(k_f);
  const FloatV x = hn::Load(k_f, column.x + i);
  const FloatV w = hn::Mul(x, x);
  const FloatV wx = hn::Mul(w, x);
  const FloatV old_l = hn::Load(k_f, column.level + i);
  const FloatV lx = hn::Sub(sum_lx, hn::Mul(wx, old_l));
  const FloatV l2 = hn::Sub(sum_l2, hn::Mul(hn::Mul(w, old_l), old_l));
  const IntV nearest = nearest_int(hn::Div(hn::Mul(x, l2), lx));
  const FloatV new_l = hn::ConvertTo(k_f, clamp(nearest, -k_q3_levels, k_q3_levels - 1));
  const FloatM other = hn::And(hn::Gt(lx, zero), hn::Ne(new_l, old_l));
  const FloatV new_lx = hn::Add(lx, hn::Mul(wx, new_l));
  const FloatV new_l2 = hn::Add(l2, hn::Mul(hn::Mul(w, new_l), new_l));
  const FloatV left = hn::Mul(hn::Mul(new_lx, new_lx), sum_l2);
  const FloatV right = hn::Mul(hn::Mul(sum_lx, sum_lx), new_l2);
  const FloatM better = hn::And(hn::And(other, hn::Gt(new_l2, zero)), hn::Gt(left, right));
  hn::Store(hn::IfThenElse(better, new_l, old_l), k_f, column.level + i);
  sum_lx = hn::IfThenElse(better, new_lx, sum_lx);
  sum_l2 = hn::IfThenElse(better, new_l2, sum_l2);
  return better;
}

HWY_INLINE void begin_sweeps(Column& column, std::size_t at, FloatV& sum_lx, FloatV& sum_l2) {
  const FloatV inverse = hn::Load(k_f, column.inverse + at);
  for (std::size_t i = at; i < k_sub * k_column; i += k_column)
    hn::Store(first_level(hn::Load(k_f, column.x + i), inverse), k_f, column.level + i);
  sum_lx = hn::Load(k_f, column.sum_lx + at);
  sum_l2 = hn::Load(k_f, column.sum_l2 + at);
}

/// The later sweeps, in which most levels stay: the quotient that decides is compared without being
/// made, and only where it is near another level the definition's way is gone.
HWY_INLINE void sweep_again(Column& column, std::size_t at, FloatV& sum_lx, FloatV& sum_l2) {
  constexpr int k_tries = 4; // five with the first, as the reference
  for (std::size_t i = at; i < k_sub * k_column; i += k_column)
    bound_level(column, i);
  for (int t = 0; t < k_tries; ++t) {
    FloatM moved = hn::FirstN(k_f, 0);
    for (std::size_t i = at; i < k_sub * k_column; i += k_column) {
      const FloatV lx = hn::Sub(sum_lx, hn::Load(k_f, column.lx + i));
      const FloatV l2 = hn::Sub(sum_l2, hn::Load(k_f, column.l2 + i));
      const FloatV dividend = hn::Mul(hn::Load(k_f, column.x + i), l2);
      const FloatM above = hn::Ge(dividend, hn::Mul(hn::Load(k_f, column.low + i), lx));
      const FloatM below = hn::Le(dividend, hn::Mul(hn::Load(k_f, column.high + i), lx));
      const FloatM stays = hn::And(hn::And(above, below), hn::Ge(lx, set(k_least_sum)));
      if (HWY_LIKELY(hn::AllTrue(k_f, stays))) continue;
      moved = hn::Or(moved, try_level(column, i, sum_lx, sum_l2));
      bound_level(column, i);
    }
    if (hn::AllFalse(k_f, moved)) break;
  }
}

/// Two vectors of sub-blocks. In the first sweep most vectors have a level that moves; two at once,
/// since each waits for its own sums.
inline HWY_NOINLINE void sweep(Column& first, std::size_t first_at, Column& second,
                               std::size_t second_at) {
  const FloatV zero = hn::Zero(k_f);
  FloatV lx_a, l2_a, lx_b, l2_b;
  begin_sweeps(first, first_at, lx_a, l2_a);
  begin_sweeps(second, second_at, lx_b, l2_b);
  FloatM moved_a = hn::FirstN(k_f, 0);
  FloatM moved_b = moved_a;
  for (std::size_t i = 0; i < k_sub * k_column; i += k_column) {
    moved_a = hn::Or(moved_a, try_level(first, i + first_at, lx_a, l2_a));
    moved_b = hn::Or(moved_b, try_level(second, i + second_at, lx_b, l2_b));
  }
  if (!hn::AllFalse(k_f, moved_a)) sweep_again(first, first_at, lx_a, l2_a);
  if (!hn::AllFalse(k_f, moved_b)) sweep_again(second, second_at, lx_b, l2_b);
  const FloatV scale_a = hn::IfThenElse(hn::Gt(l2_a, zero), hn::Div(lx_a, l2_a), zero);
  const FloatV scale_b = hn::IfThenElse(hn::Gt(l2_b, zero), hn::Div(lx_b, l2_b), zero);
  hn::Store(scale_a, k_f, first.scale + first_at);
  hn::Store(scale_b, k_f, second.scale + second_at);
}

/// Sub-block j of super-block s, as j + k_subs * s.
using SubNumber = std::uint16_t;

/// Of all sub-blocks of a batch.
struct FirstSums {
  alignas(64) float lx[k_batch * k_subs];
  alignas(64) float l2[k_batch * k_subs];
};

/// Up to k_column sub-blocks of the list into lanes.
HWY_INLINE void load_column(const Batch& batch, const SubNumber* subs, std::size_t count,
                            const SymmetricFound* found, const FirstSums& sums, Column& column) {
  const float* lanes[k_column];
  for (std::size_t lane = 0; lane < k_column; ++lane) {
    const std::size_t sub = subs[std::min(lane, count - 1)];
    lanes[lane] = batch.x[sub / k_subs] + k_sub * (sub % k_subs);
    column.inverse[lane] = found[sub / k_tile].inverse[sub % k_tile];
    column.sum_lx[lane] = sums.lx[sub];
    column.sum_l2[lane] = sums.l2[sub];
  }
  transpose<k_column>(lanes, k_sub, column.x);
}

/// Leaves those of the list whose levels may move; how many.
HWY_INLINE std::size_t keep_movable(const Batch& batch, SubNumber* subs, std::size_t count,
                                    const SymmetricFound* found, const FirstSums& sums) {
  Column column;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; i += k_column) {
    load_column(batch, subs + i, count - i, found, sums, column);
    for (std::size_t at = 0; at < k_column; at += hn::Lanes(k_f)) {
      std::uint8_t bits[8] = {};
      hn::StoreMaskBits(k_f, may_move(column, at), bits);
      const unsigned mask = bits[0] | static_cast<unsigned>(bits[1]) << 8;
      for (std::size_t lane = 0; lane < std::min(hn::Lanes(k_f), count - std::min(count, i + at));
           ++lane) {
        subs[kept] = subs[i + at + lane];
        kept += mask >> lane & 1U;
      }
    }
  }
  return kept;
}

HWY_INLINE void sweep_all(const Batch& batch, const SubNumber* subs, std::size_t count,
                          const FirstSums& sums, SymmetricFound* found) {
  Column columns[2];
  for (std::size_t i = 0; i < count; i += 2 * k_column) {
    const std::size_t left = count - i;
    load_column(batch, subs + i, left, found, sums, columns[0]);
    // Where there is no second column the first one again: lanes that nobody asks for.
    const bool both = left > k_column;
    load_column(batch, subs + i + (both ? k_column : 0), both ? left - k_column : left, found, sums,
                columns[1]);
    for (std::size_t at = 0; at < k_column; at += hn::Lanes(k_f))
      sweep(columns[0], at, columns[1], at);
    for (std::size_t lane = 0; lane < std::min(left, 2 * k_column); ++lane) {
      const std::size_t sub = subs[i + lane];
      found[sub / k_tile].scale[sub % k_tile] = columns[lane / k_column].scale[lane % k_column];
    }
  }
}

/// The search without importance. Only sub-blocks whose largest weight is negative take part in the
/// sweeps: in the others w*x*l is never positive, and the definition moves levels only where their
/// sum is.
HWY_INLINE void sweep_search(const Batch& batch, SymmetricFound* found) {
  Tile tile;
  FirstSums sums;
  const float* lanes[k_tile];
  SubNumber subs[k_batch * k_subs + 1];
  std::size_t count = 0;
  const std::size_t all = batch.count * k_subs;
  for (std::size_t first = 0; first < all; first += k_tile) {
    SymmetricFound& of_tile = found[first / k_tile];
    lanes_of(batch.x, first / k_tile, lanes);
    transpose<k_tile>(lanes, k_sub, tile.x);
    first_scales(tile, of_tile, sums.lx + first, sums.l2 + first);
    for (std::size_t lane = 0; lane < k_tile; ++lane) {
      subs[count] = static_cast<SubNumber>(first + lane);
      count += of_tile.inverse[lane] > 0.0F && first + lane < all ? 1U : 0U;
    }
  }
  count = keep_movable(batch, subs, count, found, sums);
  sweep_all(batch, subs, count, sums, found);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
