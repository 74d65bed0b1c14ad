// SPDX-License-Identifier: Apache-2.0

// Where a group of an IQ2 or IQ3 type is off the grid: the neighbour of least error for each
// candidate scale. Candidates ascend, and so do levels: those that have the same code come in runs,
// and a run is searched as one.
//
// A neighbour with levels q has the error E(s) = sum r (s q - x)^2 = s (s Q - 2 P) + X, with
// Q = sum r q q, P = sum r x q and X = sum r x x. For s > 0 neighbours compare as the lines
// s Q - 2 P do. Lines that do not cross at either end of a run do not cross within it, so most
// neighbours lose against one other for all scales of the run at once. Lines are computed in any
// order; a bound of what the definition and they may be off (k_doubt) goes with them, and where it
// leaves more than one neighbour, those are compared as the definition does it.

#if defined(MODELD_QUANTIZE_KERNELS_GRID_LINES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_GRID_LINES_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_GRID_LINES_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_GRID_LINES_INL_HPP
#endif

#include "quantize/kernels/blocks-inl.hpp"
#include "quantize/kernels/neighbour_table.hpp"
#include "quantize/reference/grid_search.hpp"

#include <bit>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

using reference::GridBlock;

inline constexpr std::size_t k_candidates = 32; ///< of a search: 31 at most
/// Beyond the candidates: the scale that was found, for which groups are placed again.
inline constexpr std::size_t k_found = k_candidates;
/// That one fills a vector.
inline constexpr std::size_t k_slots = k_candidates + 16;
inline constexpr std::size_t k_max_groups = reference::k_grid_block / 4;
inline constexpr std::size_t k_max_list = 304; ///< 292 neighbours and what fills their last chunk

/// What the line of a neighbour and the definition's error differ by, at most, is below
/// k_doubt * (s Q + X / s), in units of error / s. With u = 2^-24, the sums of eight terms and the
/// roundings of each add up to 48 u s Q + 37 u X / s.
inline constexpr float k_doubt = 64.0F / 16777216.0F;

/// Bits of a level in a code, and the lowest of those.
template <std::size_t Group>
inline constexpr int k_level_bits = Group == 4 ? 3 : 2;
template <std::size_t Group>
inline constexpr int k_level_mask = Group == 4 ? 7 : 3;

/// Candidates of a group with the same code, off the grid.
struct GridRun {
  NeighbourTable::List list;
  std::uint32_t group;
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t low = 0;  ///< bit n: neighbour n may be best for the lowest scale; short lists
  std::uint32_t high = 0; ///< for the highest
};

/// The lines of a short list's neighbours.
struct alignas(64) Lines {
  float q[32]; ///< Q
  float p[32]; ///< -2 P
};

/// One sub-block's search.
struct alignas(64) GridSearch {
  float inverse[k_slots];
  float scale[k_slots];
  std::int32_t code[k_max_groups][k_slots]; ///< of each group for each scale
  std::uint32_t off_grid[k_max_groups];     ///< bit t: for scale t the group was moved to a point
  alignas(64) float qx[k_slots];
  alignas(64) float q2[k_slots];
  alignas(64) float weighted_x[reference::k_grid_block]; ///< weights[i] * x[i]
  alignas(64) float slope[reference::k_grid_block];      ///< -2 roots[i] * x[i]
  float rest[k_max_groups];                              ///< X of each group
  float roots[k_max_groups];                             ///< their sum
  bool sure[k_max_groups];                               ///< whether k_doubt holds
  alignas(64) float list_q[k_max_list];                  ///< Q of each neighbour
  alignas(64) float list_p[k_max_list];                  ///< -2 P
  std::uint16_t left[k_max_list];                        ///< neighbours that may be best
  GridRun runs[k_max_groups * k_candidates];
  Lines lines[k_max_groups * k_candidates];
  std::uint16_t open[k_max_groups * k_candidates]; ///< runs that have more than one neighbour left
};

/// Lanes of neighbours: lists of groups of four are short.
template <std::size_t Group>
using Near = hn::CappedTag<float, Group == 4 ? 8 : 16>;

template <class D, class M>
HWY_INLINE std::uint32_t mask_bits(D d, M mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, mask, bytes);
  return bytes[0] | static_cast<std::uint32_t>(bytes[1]) << 8;
}

/// 2 level + 1 of element I of each lane's code.
template <std::size_t Group, std::size_t I, class DI>
HWY_INLINE hn::VFromD<hn::RebindToFloat<DI>> odd_level(DI d, hn::VFromD<DI> code) {
  constexpr int k_shift = k_level_bits<Group> * static_cast<int>(I) - 1;
  hn::VFromD<DI> twice = hn::Add(code, code);
  if constexpr (k_shift >= 0) twice = hn::ShiftRight<k_shift>(code);
  const auto odd = hn::Or(hn::And(twice, hn::Set(d, 2 * k_level_mask<Group>)), hn::Set(d, 1));
  return hn::ConvertTo(hn::RebindToFloat<DI>(), odd);
}

template <std::size_t Group, std::size_t I, class D, class V, class VI>
HWY_INLINE void add_lines(D d, VI code, const float* roots, const float* slope, V& q, V& p) {
  if constexpr (I < Group) {
    const V odd = odd_level<Group, I>(hn::RebindToSigned<D>(), code);
    q = hn::MulAdd(hn::Mul(odd, odd), hn::Set(d, roots[I]), q);
    p = hn::MulAdd(odd, hn::Set(d, slope[I]), p);
    add_lines<Group, I + 1>(d, code, roots, slope, q, p);
  }
}

/// Q and -2 P of the neighbours with these codes.
template <std::size_t Group, class D, class V>
HWY_INLINE void lines_of(D d, const std::uint16_t* codes, const GridRun& run,
                         const GridBlock& block, const GridSearch& search, V& q, V& p) {
  const hn::Rebind<std::uint16_t, D> halves;
  const auto code = hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(halves, codes));
  q = hn::Zero(d);
  p = hn::Zero(d);
  add_lines<Group, 0>(d, code, block.roots.data() + run.group * Group,
                      search.slope + run.group * Group, q, p);
}

/// The definition's choice among list.codes[which[0..count)] for one scale.
template <std::size_t Group>
HWY_NOINLINE std::uint32_t compare_exactly(const std::uint16_t* codes, const std::uint16_t* which,
                                           std::size_t count, const float* x, const float* roots,
                                           float scale) {
  std::uint32_t best = codes[which == nullptr ? 0 : which[0]];
  float least = std::numeric_limits<float>::max();
  for (std::size_t n = 0; n < count && least > 0.0F; ++n) {
    const std::uint32_t code = codes[which == nullptr ? n : which[n]];
    float error = 0.0F;
    for (std::size_t i = 0; i < Group; ++i) {
      const auto level = (code >> (k_level_bits<Group> * i)) & unsigned{k_level_mask<Group>};
      const float difference = scale * static_cast<float>(2 * level + 1) - x[i];
      error += roots[i] * difference * difference;
    }
    if (error < least) {
      least = error;
      best = code;
    }
  }
  return best;
}

/// The ends of a run, and by what the lines there are off beside their k_doubt.
struct Ends {
  float low, high;             ///< scales
  float doubt_low, doubt_high; ///< of two lines

  Ends(const GridRun& run, const GridSearch& search)
      : low(search.scale[run.to - 1]), high(search.scale[run.from]) {
    const float doubt = 2.0F * k_doubt * search.rest[run.group];
    doubt_low = doubt * search.inverse[run.to - 1];
    doubt_high = doubt * search.inverse[run.from];
  }
};

/// Appends n + i to search.left for each bit i.
HWY_INLINE void append_bits(std::uint32_t bits, std::size_t n, std::size_t& left,
                            GridSearch& search) {
  for (; bits != 0; bits &= bits - 1) {
    search.left[left++] =
        static_cast<std::uint16_t>(n + static_cast<std::size_t>(std::countr_zero(bits)));
  }
}

/// Of `count` lines those that neither line a nor line b beats at both ends. One that loses at the
/// low end to one and at the high end to another may win between them. Returns how many are in
/// search.left.
template <class D>
HWY_INLINE std::size_t keep_beside(D d, const Ends& ends, const float* q, const float* p,
                                   std::size_t count, std::size_t a, std::size_t b,
                                   GridSearch& search) {
  const float low = ends.low * (1.0F + k_doubt);
  const float high = ends.high * (1.0F + k_doubt);
  const auto a_low = hn::Set(d, low * q[a] + p[a] + ends.doubt_low);
  const auto a_high = hn::Set(d, high * q[a] + p[a] + ends.doubt_high);
  const auto b_low = hn::Set(d, low * q[b] + p[b] + ends.doubt_low);
  const auto b_high = hn::Set(d, high * q[b] + p[b] + ends.doubt_high);
  const auto below_low = hn::Set(d, ends.low * (1.0F - k_doubt));
  const auto below_high = hn::Set(d, ends.high * (1.0F - k_doubt));
  std::size_t left = 0;
  for (std::size_t n = 0; n < count; n += hn::Lanes(d)) {
    const auto at_low = hn::MulAdd(below_low, hn::Load(d, q + n), hn::Load(d, p + n));
    const auto at_high = hn::MulAdd(below_high, hn::Load(d, q + n), hn::Load(d, p + n));
    const auto beside_a = hn::Or(hn::Le(at_low, a_low), hn::Le(at_high, a_high));
    const auto beside_b = hn::Or(hn::Le(at_low, b_low), hn::Le(at_high, b_high));
    const std::uint32_t bits = mask_bits(d, hn::And(beside_a, beside_b));
    const std::uint32_t valid = count - n < 16 ? (1U << (count - n)) - 1U : 0xFFFFU;
    append_bits(bits & valid, n, left, search);
  }
  return left;
}

/// Writes `best` for the candidates of the run within the vector at t.
HWY_INLINE void put_codes(IntV best, std::size_t t, const GridRun& run, GridSearch& search) {
  const IntV at = hn::Iota(k_i, static_cast<std::int32_t>(t));
  const auto from = hn::Gt(at, hn::Set(k_i, static_cast<std::int32_t>(run.from) - 1));
  const auto to = hn::Lt(at, hn::Set(k_i, static_cast<std::int32_t>(run.to)));
  std::int32_t* const codes = search.code[run.group] + t;
  hn::Store(hn::IfThenElse(hn::And(from, to), best, hn::Load(k_i, codes)), k_i, codes);
}

/// All candidates of the run go to one point.
HWY_INLINE void put_code(std::uint32_t code, const GridRun& run, GridSearch& search) {
  const std::size_t lanes = hn::Lanes(k_f);
  const IntV best = hn::Set(k_i, static_cast<std::int32_t>(code));
  for (std::size_t t = run.from / lanes * lanes; t < run.to; t += lanes)
    put_codes(best, t, run, search);
}

template <std::size_t Group>
HWY_INLINE void put_exactly(const GridRun& run, const std::uint16_t* which, std::size_t count,
                            std::size_t t, const GridBlock& block, GridSearch& search) {
  search.code[run.group][t] = static_cast<std::int32_t>(
      compare_exactly<Group>(run.list.codes, which, count, block.x.data() + run.group * Group,
                             block.roots.data() + run.group * Group, search.scale[t]));
}

/// Of the neighbours in search.left the best one for each scale of the run.
template <std::size_t Group>
HWY_INLINE void compare_left(const GridRun& run, const GridBlock& block, const float* list_q,
                             const float* list_p, std::size_t left, GridSearch& search) {
  const std::size_t lanes = hn::Lanes(k_f);
  const FloatV highest = set(std::numeric_limits<float>::max());
  for (std::size_t t = run.from / lanes * lanes; t < run.to; t += lanes) {
    const FloatV scale = hn::Load(k_f, search.scale + t);
    const FloatV above = hn::Mul(scale, set(1.0F + k_doubt));
    const FloatV below = hn::Mul(scale, set(1.0F - k_doubt));
    FloatV best_above = highest; // of the best so far, and the lowest that any other may have
    FloatV best_below = highest;
    FloatV other_below = highest;
    IntV best = hn::Zero(k_i);
    for (std::size_t n = 0; n < left; ++n) {
      const FloatV q = set(list_q[search.left[n]]);
      const FloatV p = set(list_p[search.left[n]]);
      const FloatV high = hn::MulAdd(above, q, p);
      const FloatV low = hn::MulAdd(below, q, p);
      const FloatM less = hn::Lt(high, best_above);
      other_below = hn::Min(other_below, hn::IfThenElse(less, best_below, low));
      best_above = hn::IfThenElse(less, high, best_above);
      best_below = hn::IfThenElse(less, low, best_below);
      const IntV code = hn::Set(k_i, run.list.codes[search.left[n]]);
      best = hn::IfThenElse(hn::RebindMask(k_i, less), code, best);
    }
    put_codes(best, t, run, search);
    const FloatV doubt =
        hn::Mul(set(2.0F * k_doubt * search.rest[run.group]), hn::Load(k_f, search.inverse + t));
    std::uint32_t unsure = mask_bits(k_f, hn::Le(other_below, hn::Add(best_above, doubt)));
    for (; unsure != 0; unsure &= unsure - 1) {
      const std::size_t u = t + static_cast<std::size_t>(std::countr_zero(unsure));
      if (u < run.from || u >= run.to) continue;
      put_exactly<Group>(run, search.left, left, u, block, search);
    }
  }
}

/// The neighbours of a list of at most Vectors vectors that may be best at either end of the run.
template <std::size_t Group, std::size_t Vectors>
HWY_INLINE void screen_short(const GridBlock& block, GridRun& run, Lines& lines,
                             const GridSearch& search) {
  const Near<Group> d;
  const std::size_t lanes = hn::Lanes(d);
  const Ends ends(run, search);
  const auto above_low = hn::Set(d, ends.low * (1.0F + k_doubt));
  const auto above_high = hn::Set(d, ends.high * (1.0F + k_doubt));
  auto q = hn::Zero(d), p = q, q2 = q, p2 = q;
  lines_of<Group>(d, run.list.codes, run, block, search, q, p);
  hn::Store(q, d, lines.q);
  hn::Store(p, d, lines.p);
  auto least_low = hn::MulAdd(above_low, q, p);
  auto least_high = hn::MulAdd(above_high, q, p);
  if constexpr (Vectors == 2) {
    lines_of<Group>(d, run.list.codes + lanes, run, block, search, q2, p2);
    hn::Store(q2, d, lines.q + lanes);
    hn::Store(p2, d, lines.p + lanes);
    least_low = hn::Min(least_low, hn::MulAdd(above_low, q2, p2));
    least_high = hn::Min(least_high, hn::MulAdd(above_high, q2, p2));
  }
  const auto limit_low = hn::Add(hn::MinOfLanes(d, least_low), hn::Set(d, ends.doubt_low));
  const auto limit_high = hn::Add(hn::MinOfLanes(d, least_high), hn::Set(d, ends.doubt_high));
  const auto below_low = hn::Set(d, ends.low * (1.0F - k_doubt));
  const auto below_high = hn::Set(d, ends.high * (1.0F - k_doubt));
  std::uint32_t low = mask_bits(d, hn::Le(hn::MulAdd(below_low, q, p), limit_low));
  std::uint32_t high = mask_bits(d, hn::Le(hn::MulAdd(below_high, q, p), limit_high));
  if constexpr (Vectors == 2) {
    low |= mask_bits(d, hn::Le(hn::MulAdd(below_low, q2, p2), limit_low)) << lanes;
    high |= mask_bits(d, hn::Le(hn::MulAdd(below_high, q2, p2), limit_high)) << lanes;
  }
  const auto valid = static_cast<std::uint32_t>((std::uint64_t{1} << run.list.count) - 1);
  run.low = low & valid;
  run.high = high & valid;
}

/// A run with a list of any length, or one for which k_doubt does not hold.
template <std::size_t Group>
HWY_NOINLINE void place_long(const GridRun& run, const GridBlock& block, GridSearch& search) {
  if (!search.sure[run.group]) {
    for (std::size_t t = run.from; t < run.to; ++t)
      put_exactly<Group>(run, nullptr, run.list.count, t, block, search);
    return;
  }
  const Near<Group> d;
  const Ends ends(run, search);
  const auto above_low = hn::Set(d, ends.low * (1.0F + k_doubt));
  const auto above_high = hn::Set(d, ends.high * (1.0F + k_doubt));
  auto least_low = hn::Set(d, std::numeric_limits<float>::max());
  auto least_high = least_low;
  for (std::size_t n = 0; n < run.list.count; n += hn::Lanes(d)) {
    auto q = least_low, p = least_low;
    lines_of<Group>(d, run.list.codes + n, run, block, search, q, p);
    hn::Store(q, d, search.list_q + n);
    hn::Store(p, d, search.list_p + n);
    least_low = hn::Min(least_low, hn::MulAdd(above_low, q, p));
    least_high = hn::Min(least_high, hn::MulAdd(above_high, q, p));
  }
  const auto limit_low = hn::Add(hn::MinOfLanes(d, least_low), hn::Set(d, ends.doubt_low));
  const auto limit_high = hn::Add(hn::MinOfLanes(d, least_high), hn::Set(d, ends.doubt_high));
  const auto below_low = hn::Set(d, ends.low * (1.0F - k_doubt));
  const auto below_high = hn::Set(d, ends.high * (1.0F - k_doubt));
  std::size_t first_low = k_max_list;
  std::size_t first_high = k_max_list;
  std::size_t last = 0;
  for (std::size_t n = 0; n < run.list.count; n += hn::Lanes(d)) {
    const auto q = hn::Load(d, search.list_q + n);
    const auto p = hn::Load(d, search.list_p + n);
    const auto low = hn::Le(hn::MulAdd(below_low, q, p), limit_low);
    const auto high = hn::Le(hn::MulAdd(below_high, q, p), limit_high);
    if (hn::AllFalse(d, hn::Or(low, high))) continue;
    const std::uint32_t low_bits = mask_bits(d, low);
    const std::uint32_t high_bits = mask_bits(d, high);
    const auto first = [n](std::uint32_t bits) {
      return bits == 0 ? k_max_list : n + static_cast<std::size_t>(std::countr_zero(bits));
    };
    first_low = std::min(first_low, first(low_bits));
    first_high = std::min(first_high, first(high_bits));
    last = n + static_cast<std::size_t>(31 - std::countl_zero(low_bits | high_bits));
  }
  // What fills the last chunk repeats the last neighbour.
  if (first_low == first_high && std::min(last, run.list.count - 1) == first_low) {
    put_code(run.list.codes[first_low], run, search);
    return;
  }
  const std::size_t left = keep_beside(d, ends, search.list_q, search.list_p, run.list.count,
                                       first_low, first_high, search);
  compare_left<Group>(run, block, search.list_q, search.list_p, left, search);
}

/// Moves the candidates of the runs to their points. Runs with short lists go through each step
/// together: a processor that guesses the next branch is seldom wrong then.
template <std::size_t Group>
HWY_INLINE void place_runs(const GridBlock& block, std::size_t count, GridSearch& search) {
  const Near<Group> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t open = 0;
  for (std::size_t r = 0; r < count; ++r) {
    GridRun& run = search.runs[r];
    if (run.list.count <= lanes && search.sure[run.group]) {
      screen_short<Group, 1>(block, run, search.lines[r], search);
    } else if (run.list.count <= 2 * lanes && search.sure[run.group]) {
      screen_short<Group, 2>(block, run, search.lines[r], search);
    } else {
      place_long<Group>(run, block, search);
      continue;
    }
    const std::uint32_t both = run.low | run.high;
    put_code(run.list.codes[std::countr_zero(both)], run, search);
    search.open[open] = static_cast<std::uint16_t>(r);
    open += (both & (both - 1)) != 0 ? 1 : 0;
  }
  for (std::size_t o = 0; o < open; ++o) {
    const GridRun& run = search.runs[search.open[o]];
    const Lines& lines = search.lines[search.open[o]];
    const std::size_t left =
        keep_beside(d, Ends(run, search), lines.q, lines.p, run.list.count,
                    static_cast<std::size_t>(std::countr_zero(run.low)),
                    static_cast<std::size_t>(std::countr_zero(run.high)), search);
    compare_left<Group>(run, block, lines.q, lines.p, left, search);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
