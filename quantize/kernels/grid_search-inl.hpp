// SPDX-License-Identifier: Apache-2.0

// The search of the IQ2 and IQ3 types for a scale and points on a grid. Candidate scales are
// independent, so each lane has one; the neighbours of a group that is off the grid are too, so
// there each lane has a neighbour. The order of comparisons stays: candidates are compared one
// after another, and of equally near neighbours the first wins.

#if defined(MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP
#endif

#include "quantize/kernels/blocks-inl.hpp"
#include "quantize/kernels/grid_table.hpp"
#include "quantize/reference/grid_search.hpp"

#include <cstring>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

using reference::GridBlock;
using reference::GridFit;
using reference::GridRule;
using reference::Signs;

/// Candidates of a search, rounded up to whole vectors: 31 at most.
inline constexpr std::size_t k_candidates = 32;

/// All candidates of one sub-block.
struct Candidates {
  alignas(64) float inverse[k_candidates];
  alignas(64) float scale[k_candidates];
  alignas(64) std::int32_t code[k_candidates];
  alignas(64) float qx[k_candidates];
  alignas(64) float q2[k_candidates];
  alignas(64) std::uint8_t level[reference::k_grid_block][k_candidates];
  alignas(64) float cost[8 * 4 * k_candidates]; ///< of element i at level l: see make_costs
  alignas(64) std::int32_t nearest[k_candidates];
  std::uint32_t on_grid[k_candidates]; ///< bit k: group k was by itself
};

/// What the levels of element i of the chunk cost: a vector of `cost` by level.
HWY_INLINE FloatV cost_of(const float* cost, const std::uint8_t* levels, std::size_t i) {
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const auto level = hn::LoadU(bytes, levels + i * GridTable::k_chunk);
  const auto index = hn::IndicesFromVec(k_f, hn::PromoteTo(k_i, level));
  return hn::TableLookupLanes(hn::Load(k_f, cost + i * hn::Lanes(k_f)), index);
}

/// Of the neighbours of `code` the one of least error for `scale`, the first of equals. The cost of
/// each level of each element is made once; a neighbour's error is a sum of look-ups.
template <std::size_t Group>
HWY_INLINE std::size_t best_neighbour(const GridTable& table, std::uint32_t code, const float* x,
                                      const float* roots, float scale) {
  const std::size_t lanes = hn::Lanes(k_f);
  const FloatV odd = hn::Add(hn::Iota(k_f, 0.0F), hn::Iota(k_f, 1.0F)); // 2 level + 1
  const FloatV values = hn::Mul(set(scale), odd);
  alignas(64) float cost[Group * 16];
  for (std::size_t i = 0; i < Group; ++i) {
    const FloatV difference = hn::Sub(values, set(x[i]));
    hn::Store(hn::Mul(hn::Mul(set(roots[i]), difference), difference), k_f, cost + i * lanes);
  }
  FloatV least = set(std::numeric_limits<float>::max());
  IntV best = hn::Zero(k_i);
  IntV at = hn::Iota(k_i, 0);
  const std::size_t chunks = table.chunks(code);
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::uint8_t* const levels = table.levels(code, c);
    for (std::size_t n = 0; n < GridTable::k_chunk; n += lanes) {
      const std::uint8_t* const of = levels + n;
      FloatV error = hn::Add(cost_of(cost, of, 0), cost_of(cost, of, 1));
      error = hn::Add(error, cost_of(cost, of, 2));
      error = hn::Add(error, cost_of(cost, of, 3));
      if constexpr (Group == 8) {
        error = hn::Add(error, cost_of(cost, of, 4));
        error = hn::Add(error, cost_of(cost, of, 5));
        error = hn::Add(error, cost_of(cost, of, 6));
        error = hn::Add(error, cost_of(cost, of, 7));
      }
      const FloatM less = hn::Lt(error, least);
      least = hn::IfThenElse(less, error, least);
      best = hn::IfThenElse(hn::RebindMask(k_i, less), at, best);
      at = hn::Add(at, hn::Set(k_i, static_cast<std::int32_t>(lanes)));
    }
  }
  const FloatM equal = hn::Eq(least, hn::MinOfLanes(k_f, least));
  const IntV none = hn::Set(k_i, std::numeric_limits<std::int32_t>::max());
  const IntV first = hn::MinOfLanes(k_i, hn::IfThenElse(hn::RebindMask(k_i, equal), best, none));
  return table.points(code)[hn::GetLane(first)];
}

/// Level of x for each lane's inverse scale.
HWY_INLINE IntV grid_level(FloatV inverse, float x, int top) {
  const FloatV v = hn::Mul(set(0.5F), hn::Sub(hn::Mul(inverse, set(x)), set(1.0F)));
  return clamp(nearest_int(v), 0, top - 1);
}

/// Levels that a group's elements have: 8 of IQ3 in groups of 4, 3 of IQ2 in groups of 8.
template <std::size_t Group>
inline constexpr std::size_t k_levels = Group == 4 ? 8 : 3;

/// c.cost[(i * k_levels + l) * k_candidates + t]: what level l of element i costs at scale t.
template <std::size_t Group>
HWY_INLINE void make_costs(const float* x, const float* roots, std::size_t count, Candidates& c) {
  for (std::size_t t = 0; t < count; t += hn::Lanes(k_f)) {
    const FloatV scale = hn::Load(k_f, c.scale + t);
    for (std::size_t l = 0; l < k_levels<Group>; ++l) {
      const FloatV value = hn::Mul(scale, set(static_cast<float>(2 * l + 1)));
      for (std::size_t i = 0; i < Group; ++i) {
        const FloatV difference = hn::Sub(value, set(x[i]));
        const FloatV cost = hn::Mul(hn::Mul(set(roots[i]), difference), difference);
        hn::Store(cost, k_f, c.cost + (i * k_levels<Group> + l) * k_candidates + t);
      }
    }
  }
}

/// What the level of element i costs, at the scales of a vector.
template <std::size_t Group>
HWY_INLINE FloatV cost_at(const float* cost, const std::uint8_t* levels, std::size_t i) {
  return hn::Load(k_f, cost + (i * k_levels<Group> + levels[i]) * k_candidates);
}

/// c.nearest[t] for the vector at t: the neighbour of least error at each lane's scale, the first
/// of equals.
template <std::size_t Group>
HWY_INLINE void nearest_by_scale(const GridTable& table, std::uint32_t code, std::size_t t,
                                 Candidates& c) {
  FloatV least = set(std::numeric_limits<float>::max());
  IntV best = hn::Zero(k_i);
  const std::size_t count = table.neighbours(code);
  const std::uint8_t* HWY_RESTRICT levels = table.levels_by_neighbour(code);
  const float* const cost = c.cost + t;
  for (std::size_t n = 0; n < count; ++n, levels += Group) {
    // Written out: compilers leave a loop here, which costs as much as the additions.
    FloatV error = hn::Add(cost_at<Group>(cost, levels, 0), cost_at<Group>(cost, levels, 1));
    error = hn::Add(error, cost_at<Group>(cost, levels, 2));
    error = hn::Add(error, cost_at<Group>(cost, levels, 3));
    if constexpr (Group == 8) {
      error = hn::Add(error, cost_at<Group>(cost, levels, 4));
      error = hn::Add(error, cost_at<Group>(cost, levels, 5));
      error = hn::Add(error, cost_at<Group>(cost, levels, 6));
      error = hn::Add(error, cost_at<Group>(cost, levels, 7));
    }
    const FloatM less = hn::Lt(error, least);
    least = hn::IfThenElse(less, error, least);
    const IntV which = hn::Set(k_i, static_cast<std::int32_t>(n));
    best = hn::IfThenElse(hn::RebindMask(k_i, less), which, best);
  }
  hn::Store(best, k_i, c.nearest + t);
}

/// Whether lanes of scales cost less than lanes of neighbours, for a run of `steps` candidates with
/// the same code. The constants count instructions, roughly.
template <std::size_t Group>
HWY_INLINE bool prefers_scales(std::size_t neighbours, std::size_t steps) {
  const std::size_t lanes = hn::Lanes(k_f);
  const std::size_t each = 3 * Group + 4;
  const std::size_t by_scale = (steps / lanes + 1) * neighbours * each;
  const std::size_t vectors = (neighbours + 15) / 16 * (16 / lanes);
  return by_scale < steps * (vectors * each + 60);
}

/// Moves group k of candidates [from, to), which have the same code, to their points.
template <std::size_t Group>
HWY_INLINE void move_to_points(const GridTable& table, const GridBlock& block, std::size_t k,
                               std::size_t from, std::size_t to, Candidates& c) {
  const std::size_t lanes = hn::Lanes(k_f);
  const std::size_t first = k * Group;
  const auto code = static_cast<std::uint32_t>(c.code[from]);
  if (prefers_scales<Group>(table.neighbours(code), to - from)) {
    for (std::size_t t = from / lanes * lanes; t < to; t += lanes) {
      nearest_by_scale<Group>(table, code, t, c);
      for (std::size_t u = std::max(t, from); u < std::min(t + lanes, to); ++u) {
        const auto n = static_cast<std::size_t>(c.nearest[u]);
        const std::uint8_t* const levels = table.levels_by_neighbour(code) + n * Group;
        for (std::size_t i = 0; i < Group; ++i)
          c.level[first + i][u] = levels[i];
      }
    }
    return;
  }
  for (std::size_t t = from; t < to; ++t) {
    const std::size_t point = best_neighbour<Group>(table, code, block.x.data() + first,
                                                    block.roots.data() + first, c.scale[t]);
    const std::uint8_t* const levels = table.grid().levels(point);
    for (std::size_t i = 0; i < Group; ++i)
      c.level[first + i][t] = levels[i];
  }
}

/// Levels and codes of group k for all candidates; then those that are off the grid are moved.
template <std::size_t Group>
HWY_INLINE void place_candidates(const GridTable& table, const GridRule& rule,
                                 const GridBlock& block, std::size_t k, std::size_t count,
                                 Candidates& c) {
  constexpr int k_bits = Group == 4 ? 3 : 2;
  const std::size_t first = k * Group;
  for (std::size_t t = 0; t < count; t += hn::Lanes(k_f)) {
    const FloatV inverse = hn::Load(k_f, c.inverse + t);
    IntV code = hn::Zero(k_i);
    for (std::size_t i = Group; i-- > 0;) {
      const IntV level = grid_level(inverse, block.x[first + i], rule.top);
      store_bytes(level, &c.level[first + i][t]);
      code = hn::Or(hn::ShiftLeft<k_bits>(code), level);
    }
    hn::Store(code, k_i, c.code + t);
  }
  make_costs<Group>(block.x.data() + first, block.roots.data() + first, count, c);
  // The candidates ascend, and so do levels: equal codes come in runs.
  for (std::size_t from = 0, to = 0; from < count; from = to) {
    while (to < count && c.code[to] == c.code[from])
      ++to;
    if (table.neighbours(static_cast<std::uint32_t>(c.code[from])) != 0) {
      move_to_points<Group>(table, block, k, from, to, c);
    } else {
      for (std::size_t t = from; t < to; ++t)
        c.on_grid[t] |= 1U << k;
    }
  }
}

/// Sums of w x q and w q q over the sub-block, in order, for all candidates.
HWY_INLINE void sum_candidates(const GridBlock& block, std::size_t count, Candidates& c) {
  const hn::Rebind<std::uint8_t, Floats> bytes;
  for (std::size_t t = 0; t < count; t += hn::Lanes(k_f)) {
    FloatV qx = hn::Zero(k_f);
    FloatV q2 = qx;
    for (std::size_t i = 0; i < block.size; ++i) {
      const IntV level = hn::PromoteTo(k_i, hn::LoadU(bytes, &c.level[i][t]));
      const FloatV q = hn::ConvertTo(k_f, hn::Add(hn::Add(level, level), hn::Set(k_i, 1)));
      const FloatV w = set(block.weights[i]);
      qx = hn::Add(qx, hn::Mul(hn::Mul(w, set(block.x[i])), q));
      q2 = hn::Add(q2, hn::Mul(hn::Mul(w, q), q));
    }
    hn::Store(qx, k_f, c.qx + t);
    hn::Store(q2, k_f, c.q2 + t);
  }
}

/// Puts the groups of `which` on the grid for the scale that was found, and fits it again.
template <std::size_t Group>
HWY_INLINE void place_again(const GridTable& table, const GridRule& rule, std::uint32_t which,
                            const GridBlock& block, GridFit& fit) {
  const float inverse = 1.0F / fit.scale;
  for (std::size_t k = 0; k < block.size / Group; ++k) {
    if ((which >> k & 1U) == 0) continue;
    const std::size_t first = k * Group;
    for (std::size_t i = first; i < first + Group; ++i) {
      const int level = nearest_int(0.5F * (inverse * block.x[i] - 1.0F));
      fit.levels[i] = static_cast<std::uint8_t>(std::clamp(level, 0, rule.top - 1));
    }
    const std::uint32_t code = table.grid().code(&fit.levels[first]);
    if (table.neighbours(code) == 0) continue;
    const std::size_t point = best_neighbour<Group>(table, code, block.x.data() + first,
                                                    block.roots.data() + first, fit.scale);
    std::copy_n(table.grid().levels(point), Group, &fit.levels[first]);
  }
  float qx = 0.0F;
  float q2 = 0.0F;
  for (std::size_t i = 0; i < block.size; ++i) {
    const auto q = static_cast<float>(2 * fit.levels[i] + 1);
    qx += block.weights[i] * block.x[i] * q;
    q2 += block.weights[i] * q * q;
  }
  if (q2 > 0.0F) fit.scale = qx / q2;
}

/// Which groups the rule places again; `on_grid` has a bit for each group.
HWY_INLINE std::uint32_t again(const GridRule& rule, std::uint32_t on_grid, std::uint32_t all) {
  if (rule.again == GridRule::Again::all) return all;
  const std::uint32_t off = all & ~on_grid;
  return rule.again == GridRule::Again::off_grid || off == 0 ? off : all;
}

/// reference::fit_on_grid, but with the candidates in lanes.
template <std::size_t Group>
HWY_INLINE GridFit fit_in_lanes(const GridTable& table, const GridRule& rule, float reach,
                                const GridFit& start, Signs signs, GridBlock& block) {
  const std::size_t groups = block.size / Group;
  const std::uint32_t all = (1U << groups) - 1U;
  const auto count = static_cast<std::size_t>(2 * rule.tries + 1);
  const auto top_odd = static_cast<float>(2 * rule.top - 1);
  Candidates c;
  std::memset(c.on_grid, 0, sizeof c.on_grid);
  for (std::size_t t = 0; t < k_candidates; t += hn::Lanes(k_f)) {
    const FloatV step = hn::Iota(k_f, static_cast<float>(t) - static_cast<float>(rule.tries));
    const FloatV numerator = hn::Add(set(top_odd), hn::Mul(step, set(rule.step)));
    const FloatV inverse = hn::Div(numerator, set(reach));
    hn::Store(inverse, k_f, c.inverse + t);
    hn::Store(hn::Div(set(1.0F), inverse), k_f, c.scale + t);
  }
  for (std::size_t k = 0; k < groups; ++k)
    place_candidates<Group>(table, rule, block, k, count, c);
  sum_candidates(block, count, c);
  GridFit fit = start;
  std::uint32_t on_grid = rule.start_on_grid ? all : 0;
  float best = 0.0F;
  std::size_t chosen = k_candidates;
  for (std::size_t t = 0; t < count; ++t) {
    if (!(c.q2[t] > 0.0F && c.qx[t] * c.qx[t] > best * c.q2[t])) continue;
    fit.scale = c.qx[t] / c.q2[t];
    best = fit.scale * c.qx[t];
    on_grid = c.on_grid[t];
    chosen = t;
  }
  for (std::size_t i = 0; chosen < k_candidates && i < block.size; ++i) {
    fit.levels[i] = c.level[i][chosen];
  }
  const std::uint32_t which = again(rule, on_grid, all);
  if (fit.scale > 0.0F && which != 0) place_again<Group>(table, rule, which, block, fit);
  if (fit.scale < 0.0F) {
    fit.scale = -fit.scale;
    const unsigned mask = signs == Signs::even ? 127U : 255U;
    for (std::uint8_t& s : block.signs)
      s = static_cast<std::uint8_t>(~s & mask);
  }
  return fit;
}

/// Weights of a sub-block and their roots: importance * sqrt(sigma2 + x^2).
HWY_INLINE void weigh_block(const float* x, std::size_t n, const float* importance, float sigma2,
                            GridBlock& block) {
  block.size = n;
  for (std::size_t i = 0; i < n; i += hn::Lanes(k_f)) {
    const FloatV v = hn::LoadU(k_f, x + i);
    const FloatV root = hn::Sqrt(hn::Add(set(sigma2), hn::Mul(v, v)));
    const FloatV w = hn::Mul(hn::LoadU(k_f, importance + i), root);
    hn::StoreU(w, k_f, block.weights.data() + i);
    hn::StoreU(hn::Sqrt(w), k_f, block.roots.data() + i);
  }
}

/// Without importance: base + x^2.
HWY_INLINE void weigh_block_plain(const float* x, std::size_t n, float base, GridBlock& block) {
  block.size = n;
  for (std::size_t i = 0; i < n; i += hn::Lanes(k_f)) {
    const FloatV v = hn::LoadU(k_f, x + i);
    const FloatV w = hn::Add(set(base), hn::Mul(v, v));
    hn::StoreU(w, k_f, block.weights.data() + i);
    hn::StoreU(hn::Sqrt(w), k_f, block.roots.data() + i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
