// SPDX-License-Identifier: Apache-2.0

// The search of the IQ2 and IQ3 types for a scale and points on a grid (reference/grid_search.hpp).
// Candidate scales are independent, so each lane has one.

#if defined(MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_GRID_SEARCH_INL_HPP
#endif

#include "quantize/kernels/grid_lines-inl.hpp"
#include "quantize/kernels/grid_signs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

using reference::GridRule;

/// Rounds group k for the scales of the vector at t. The definition's rounding of
/// (inverse * x - 1) / 2, held between 0 and top - 1: adding 1.5 * 2^24 leaves half of a number,
/// rounded, in the low bits of the sum.
template <std::size_t Group>
HWY_INLINE IntV codes_at(const GridSearch& search, const GridRule& rule, const float* x,
                         std::size_t t) {
  const FloatV inverse = hn::Load(k_f, search.inverse + t);
  const FloatV limit = set(static_cast<float>(2 * (rule.top - 1)));
  const FloatV magic = set(25165824.0F);
  IntV code = hn::Zero(k_i);
  for (std::size_t i = Group; i-- > 0;) {
    FloatV v = hn::Sub(hn::Mul(inverse, set(x[i])), set(1.0F));
    v = hn::Min(hn::Max(v, hn::Zero(k_f)), limit);
    const IntV level = hn::BitCast(k_i, hn::Add(v, magic));
    code = hn::Add(hn::ShiftLeft<k_level_bits<Group>>(code), level);
  }
  // The exponent of the sums is above the sixteen bits of a code.
  return hn::And(code, hn::Set(k_i, 0xFFFF));
}

/// Codes of group k for all candidates; appends the runs that are off the grid to the first
/// `found` ones and returns how many there are.
template <std::size_t Group>
HWY_INLINE std::size_t find_runs(const NeighbourTable& table, const GridRule& rule,
                                 const GridBlock& block, std::size_t k, std::size_t count,
                                 std::size_t found, GridSearch& search) {
  std::int32_t* const codes = search.code[k];
  for (std::size_t t = 0; t < count; t += hn::Lanes(k_f)) {
    hn::Store(codes_at<Group>(search, rule, block.x.data() + k * Group, t), k_i, codes + t);
  }
  codes[count] = -1;
  std::uint32_t ends = 0;
  for (std::size_t t = 0; t < count; t += hn::Lanes(k_f)) {
    const auto ended = hn::Ne(hn::Load(k_i, codes + t), hn::LoadU(k_i, codes + t + 1));
    ends |= mask_bits(k_i, ended) << t;
  }
  ends &= static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
  std::uint32_t off_grid = 0;
  for (std::uint32_t from = 0; ends != 0; ends &= ends - 1) {
    const auto to = static_cast<std::uint32_t>(std::countr_zero(ends)) + 1;
    const auto list = table.neighbours(static_cast<std::uint32_t>(codes[from]));
    search.runs[found] = {list, static_cast<std::uint32_t>(k), from, to};
    const bool off = list.count != 0;
    found += off ? 1 : 0;
    const std::uint64_t these = (std::uint64_t{1} << to) - (std::uint64_t{1} << from);
    off_grid |= off ? static_cast<std::uint32_t>(these) : 0;
    from = to;
  }
  search.off_grid[k] = off_grid;
  return found;
}

template <std::size_t Group, std::size_t I = 0>
HWY_INLINE void add_sums(IntV code, const float* weights, const float* weighted_x, FloatV& qx,
                         FloatV& q2) {
  if constexpr (I < Group) {
    const FloatV q = odd_level<Group, I>(k_i, code);
    qx = hn::Add(qx, hn::Mul(set(weighted_x[I]), q));
    q2 = hn::Add(q2, hn::Mul(hn::Mul(set(weights[I]), q), q));
    add_sums<Group, I + 1>(code, weights, weighted_x, qx, q2);
  }
}

/// Sums of w x q and w q q over the sub-block, in order, for the scales from t on.
template <std::size_t Group>
HWY_INLINE void sum_candidates(const GridBlock& block, std::size_t t, GridSearch& search) {
  FloatV qx = hn::Zero(k_f);
  FloatV q2 = qx;
  for (std::size_t k = 0; k < block.size / Group; ++k) {
    const IntV code = hn::Load(k_i, search.code[k] + t);
    add_sums<Group>(code, block.weights.data() + k * Group, search.weighted_x + k * Group, qx, q2);
  }
  hn::Store(qx, k_f, search.qx + t);
  hn::Store(q2, k_f, search.q2 + t);
}

/// Whether k_doubt holds for scales from s_low to s_high: products stay in the range in which
/// roundings are relative.
template <std::size_t Group>
HWY_INLINE bool is_sure(const GridRule& rule, const GridSearch& search, std::size_t k, float s_low,
                        float s_high) {
  constexpr float k_low = 1e-30F;
  constexpr float k_high = 1e30F;
  const float rest = search.rest[k];
  const auto top_odd = static_cast<float>(2 * rule.top - 1);
  return rest >= k_low && rest <= k_high && rest >= k_low * s_high * s_high && s_high <= 1e6F &&
         rest >= k_low * s_high && rest <= k_high * s_low &&
         s_high * search.roots[k] * top_odd * top_odd <= k_high;
}

/// What does not depend on the scale.
template <std::size_t Group>
HWY_INLINE void prepare(const GridRule& rule, const GridBlock& block, std::size_t count,
                        GridSearch& search) {
  alignas(64) float rest[reference::k_grid_block];
  for (std::size_t i = 0; i < block.size; i += hn::Lanes(k_f)) {
    const FloatV x = hn::LoadU(k_f, block.x.data() + i);
    const FloatV rx = hn::Mul(hn::LoadU(k_f, block.roots.data() + i), x);
    hn::Store(hn::Mul(hn::LoadU(k_f, block.weights.data() + i), x), k_f, search.weighted_x + i);
    hn::Store(hn::Mul(rx, set(-2.0F)), k_f, search.slope + i);
    hn::Store(hn::Mul(rx, x), k_f, rest + i);
  }
  for (std::size_t k = 0; k < block.size / Group; ++k) {
    search.rest[k] = 0.0F;
    search.roots[k] = 0.0F;
    for (std::size_t i = k * Group; i < (k + 1) * Group; ++i) {
      search.rest[k] += rest[i];
      search.roots[k] += block.roots[i];
    }
    search.sure[k] = is_sure<Group>(rule, search, k, search.scale[count - 1], search.scale[0]);
  }
}

// The search -------------------------------------------------------------------------------------

struct GridFit {
  float scale;
  std::uint32_t code[k_max_groups]; ///< all on the grid
};

/// Which groups the rule places again; `on_grid` has a bit for each group.
HWY_INLINE std::uint32_t again(const GridRule& rule, std::uint32_t on_grid, std::uint32_t all) {
  if (rule.again == GridRule::Again::all) return all;
  const std::uint32_t off = all & ~on_grid;
  return rule.again == GridRule::Again::off_grid || off == 0 ? off : all;
}

/// Puts the groups of `which` on the grid for the scale that was found, and fits it again.
template <std::size_t Group>
HWY_INLINE void place_again(const NeighbourTable& table, const GridRule& rule, std::uint32_t which,
                            const GridBlock& block, GridSearch& search, GridFit& fit) {
  for (std::size_t t = k_found; t < k_slots; t += hn::Lanes(k_f)) {
    hn::Store(set(fit.scale), k_f, search.scale + t);
    hn::Store(set(1.0F / fit.scale), k_f, search.inverse + t);
  }
  std::size_t off = 0;
  for (std::size_t k = 0; k < block.size / Group; ++k) {
    std::int32_t& code = search.code[k][k_found];
    code = static_cast<std::int32_t>(fit.code[k]);
    if ((which >> k & 1U) == 0) continue;
    const float* const x = block.x.data() + k * Group;
    hn::Store(codes_at<Group>(search, rule, x, k_found), k_i, &code);
    const auto list = table.neighbours(static_cast<std::uint32_t>(code));
    if (list.count != 0) {
      search.runs[off++] = {list, static_cast<std::uint32_t>(k), k_found, k_found + 1};
      search.sure[k] = is_sure<Group>(rule, search, k, fit.scale, fit.scale);
    }
  }
  place_runs<Group>(block, off, search);
  for (std::size_t k = 0; k < block.size / Group; ++k)
    fit.code[k] = static_cast<std::uint32_t>(search.code[k][k_found]);
  sum_candidates<Group>(block, k_found, search);
  if (search.q2[k_found] > 0.0F) fit.scale = search.qx[k_found] / search.q2[k_found];
}

/// reference::fit_on_grid, from `scale` and codes of 0. False where the scalar code must do it: an
/// element is so large for the scales that its level is not the nearest one.
template <std::size_t Group>
HWY_INLINE bool fit_in_lanes(const NeighbourTable& table, const GridRule& rule, float reach,
                             float scale, Signs signs, GridBlock& block, GridFit& fit) {
  constexpr float k_far = 1e6F;
  const std::size_t groups = block.size / Group;
  const std::uint32_t all = (1U << groups) - 1U;
  const auto count = static_cast<std::size_t>(2 * rule.tries + 1);
  const auto top_odd = static_cast<float>(2 * rule.top - 1);
  GridSearch search;
  for (std::size_t t = 0; t < k_candidates; t += hn::Lanes(k_f)) {
    const FloatV step = hn::Iota(k_f, static_cast<float>(t) - static_cast<float>(rule.tries));
    const FloatV numerator = hn::Add(set(top_odd), hn::Mul(step, set(rule.step)));
    const FloatV inverse = hn::Div(numerator, set(reach));
    hn::Store(inverse, k_f, search.inverse + t);
    hn::Store(hn::Div(set(1.0F), inverse), k_f, search.scale + t);
  }
  if (!all_within(block.x.data(), block.size, k_far / search.inverse[count - 1])) return false;
  prepare<Group>(rule, block, count, search);
  std::size_t off = 0;
  for (std::size_t k = 0; k < groups; ++k)
    off = find_runs<Group>(table, rule, block, k, count, off, search);
  place_runs<Group>(block, off, search);
  for (std::size_t t = 0; t < count; t += hn::Lanes(k_f))
    sum_candidates<Group>(block, t, search);
  fit = {scale, {}};
  std::uint32_t on_grid = rule.start_on_grid ? all : 0;
  float best = 0.0F;
  std::size_t chosen = k_candidates;
  for (std::size_t t = 0; t < count; ++t) {
    if (!(search.q2[t] > 0.0F && search.qx[t] * search.qx[t] > best * search.q2[t])) continue;
    fit.scale = search.qx[t] / search.q2[t];
    best = fit.scale * search.qx[t];
    chosen = t;
  }
  if (chosen < k_candidates) {
    on_grid = 0;
    for (std::size_t k = 0; k < groups; ++k) {
      fit.code[k] = static_cast<std::uint32_t>(search.code[k][chosen]);
      on_grid |= (~search.off_grid[k] >> chosen & 1U) << k;
    }
  }
  const std::uint32_t which = again(rule, on_grid, all);
  if (fit.scale > 0.0F && which != 0) {
    if (!all_within(block.x.data(), block.size, k_far * fit.scale)) return false;
    place_again<Group>(table, rule, which, block, search, fit);
  }
  if (fit.scale < 0.0F) {
    fit.scale = -fit.scale;
    const unsigned mask = signs == Signs::even ? 127U : 255U;
    for (std::uint8_t& s : block.signs)
      s = static_cast<std::uint8_t>(~s & mask);
  }
  return true;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
