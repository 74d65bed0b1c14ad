// SPDX-License-Identifier: Apache-2.0

// Q3_K. Layout and error criteria: quantize/reference/q3_k.cpp.

#include "quantize/kernels/table.hpp"

#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/q3_k.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/symmetric_blocks-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily q3_k_family() {
  return {HWY_TARGET, {}};
}

#else

constexpr std::size_t k_q3_bytes = 110; ///< 32 high bits, 64 low pairs, 12 scales, d
constexpr std::int32_t k_q3_levels = 4;

HWY_INLINE void pack_q3(const std::uint8_t* levels, std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d;
  std::uint8_t pairs[k_super];
  for (std::size_t i = 0; i < k_super; i += 16) {
    hn::StoreU(hn::And(hn::LoadU(d, levels + i), hn::Set(d, 3)), d, pairs + i);
  }
  for (std::size_t half = 0; half < 32; half += 16) {
    auto mask = hn::Zero(d);
    for (std::size_t k = 8; k-- > 0;) {
      const auto high = hn::ShiftRight<2>(hn::LoadU(d, levels + 32 * k + half));
      mask = hn::Or(hn::ShiftLeft<1>(mask), high);
    }
    hn::StoreU(mask, d, out + half);
  }
  pack_quarters(pairs, out + 32);
  pack_quarters(pairs + 128, out + 64);
}

/// The scales of a batch as they are stored.
struct Q3Scales {
  alignas(64) float scale[k_batch * k_subs]; ///< what a level of sub-block j stands for: [s][j]
  std::uint8_t packed[12][k_batch];
  std::uint16_t d[k_batch];
};

/// Six bits each: the low four of scales j and j + 8 in byte j, the high two of j, j + 4, ... in
/// byte 8 + j.
HWY_INLINE void pack_scales(const std::uint8_t* quantized, Q3Scales& out) {
  const hn::FixedTag<std::uint8_t, k_batch> d;
  const auto row = [&](std::size_t j) HWY_ATTR { return hn::LoadU(d, quantized + j * k_batch); };
  for (std::size_t j = 0; j < 8; ++j) {
    const auto low = hn::And(row(j), hn::Set(d, 15));
    hn::StoreU(hn::Or(low, hn::ShiftLeft<4>(row(j + 8))), d, out.packed[j]);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    const auto first =
        hn::Or(hn::ShiftRight<4>(row(j)), hn::ShiftLeft<2>(hn::ShiftRight<4>(row(j + 4))));
    const auto second =
        hn::Or(hn::ShiftRight<4>(row(j + 8)), hn::ShiftLeft<2>(hn::ShiftRight<4>(row(j + 12))));
    hn::StoreU(hn::Or(first, hn::ShiftLeft<4>(second)), d, out.packed[8 + j]);
  }
}

/// `values`: scale j of super-block s at [j * Width + s]; `found` by super-block.
template <std::size_t Width>
HWY_INLINE void store_scales(const float* values, const SymmetricFound& found, Q3Scales& out) {
  const hn::Rebind<hwy::float16_t, Floats> halves;
  const hn::Rebind<std::uint16_t, Floats> words;
  alignas(64) float scales[k_subs * k_batch];
  std::uint8_t quantized[k_subs * k_batch];
  const float* rows[k_subs];
  for (std::size_t at = 0; at < k_batch; at += hn::Lanes(k_f)) {
    const auto d = hn::DemoteTo(halves, hn::Load(k_f, found.scale + at));
    hn::StoreU(hn::BitCast(words, d), words, out.d + at);
    const FloatV scale = hn::PromoteTo(k_f, d);
    const FloatV inverse = hn::Load(k_f, found.inverse + at);
    const IntV base = hn::ConvertTo(k_i, hn::Load(k_f, found.base + at));
    for (std::size_t j = 0; j < k_subs; ++j) {
      const IntV level = nearest_int(hn::Mul(inverse, hn::Load(k_f, values + j * Width + at)));
      const IntV stored = hn::Add(base, clamp(level, -32, 31));
      store_bytes(stored, quantized + j * k_batch + at);
      const FloatV steps = hn::ConvertTo(k_f, hn::Sub(stored, hn::Set(k_i, 32)));
      hn::Store(hn::Mul(scale, steps), k_f, scales + j * k_batch + at);
    }
  }
  for (std::size_t j = 0; j < k_subs; ++j)
    rows[j] = scales + j * k_batch;
  transpose<k_subs>(rows, k_batch, out.scale);
  pack_scales(quantized, out);
}

/// Super-block s of the batch.
HWY_INLINE void encode_q3(const float* x, std::size_t s, const Q3Scales& scales,
                          const SymmetricFound* found, std::uint8_t* out) {
  alignas(64) std::uint8_t levels[k_super];
  encode_levels(x, scales.scale + s * k_subs, found[s / k_in_tile], (s % k_in_tile) * k_subs,
                k_q3_levels, levels);
  pack_q3(levels, out);
  for (std::size_t k = 0; k < 12; ++k)
    out[96 + k] = scales.packed[k][s];
  std::memcpy(out + 108, &scales.d[s], 2);
}

// Without importance ----------------------------------------------------------------------------

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

/// The start of the search: levels of the plain inverse scale. `found` gets their best scale.
HWY_INLINE void first_scales(const Tile& tile, SymmetricFound& found) {
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
    const FloatV scale = hn::IfThenElse(hn::Gt(sum_l2, zero), hn::Div(sum_lx, sum_l2), zero);
    store_symmetric(found, at, k_q3_levels, hn::Lt(size, set(k_tiny_group)), scale, inverse);
  }
}

/// Lanes of a column: those of the widest vector. Narrower ones take it in parts.
constexpr std::size_t k_column = 16;

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
  float scale[k_column];
};

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
  sum_lx = sum_l2 = hn::Zero(k_f);
  for (std::size_t i = at; i < k_sub * k_column; i += k_column) {
    const FloatV x = hn::Load(k_f, column.x + i);
    const FloatV l = first_level(x, inverse);
    hn::Store(l, k_f, column.level + i);
    add_level(x, l, sum_lx, sum_l2);
  }
}

/// The later sweeps, in which most levels stay: the quotient that decides is compared without being
/// made, and only where it is near another level the definition's way is gone.
HWY_INLINE void sweep_again(Column& column, std::size_t at, FloatV& sum_lx, FloatV& sum_l2) {
  constexpr int k_tries = 4;            // five with the first, as the reference
  constexpr float k_least_sum = 1e-30F; // products with less lose bits
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
HWY_NOINLINE void sweep(Column& first, std::size_t first_at, Column& second,
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

/// Up to k_column sub-blocks of the list into lanes.
HWY_INLINE void load_column(const Batch& batch, const SubNumber* subs, std::size_t count,
                            const SymmetricFound* found, Column& column) {
  const float* lanes[k_column];
  for (std::size_t lane = 0; lane < k_column; ++lane) {
    const std::size_t sub = subs[std::min(lane, count - 1)];
    lanes[lane] = batch.x[sub / k_subs] + k_sub * (sub % k_subs);
    column.inverse[lane] = found[sub / k_tile].inverse[sub % k_tile];
  }
  transpose<k_column>(lanes, k_sub, column.x);
}

HWY_INLINE void sweep_all(const Batch& batch, const SubNumber* subs, std::size_t count,
                          SymmetricFound* found) {
  Column columns[2];
  for (std::size_t i = 0; i < count; i += 2 * k_column) {
    const std::size_t left = count - i;
    load_column(batch, subs + i, left, found, columns[0]);
    // Where there is no second column the first one again: lanes that nobody asks for.
    const bool both = left > k_column;
    load_column(batch, subs + i + (both ? k_column : 0), both ? left - k_column : left, found,
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
  const float* lanes[k_tile];
  SubNumber subs[k_batch * k_subs + 1];
  std::size_t movable = 0;
  const std::size_t all = batch.count * k_subs;
  for (std::size_t first = 0; first < all; first += k_tile) {
    SymmetricFound& of_tile = found[first / k_tile];
    lanes_of(batch.x, first / k_tile, lanes);
    transpose<k_tile>(lanes, k_sub, tile.x);
    first_scales(tile, of_tile);
    for (std::size_t lane = 0; lane < k_tile; ++lane) {
      subs[movable] = static_cast<SubNumber>(first + lane);
      movable += of_tile.inverse[lane] > 0.0F && first + lane < all ? 1U : 0U;
    }
  }
  sweep_all(batch, subs, movable, found);
}

/// Scales without importance: the largest by magnitude becomes -32, the others follow.
HWY_INLINE void plain_q3_scales(const SymmetricFound* found, Q3Scales& out) {
  alignas(64) float values[k_subs * k_batch];
  SymmetricFound of_scales;
  const float* from[k_batch];
  for (std::size_t s = 0; s < k_batch; ++s)
    from[s] = found[s / k_in_tile].scale + (s % k_in_tile) * k_subs;
  transpose<k_batch>(from, k_subs, values);
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_batch; at += hn::Lanes(k_f)) {
    FloatV magnitude;
    const FloatV largest = largest_weight<k_subs, k_batch>(values + at, magnitude);
    const FloatV inverse = hn::Div(set(-32.0F), largest);
    const FloatM none = hn::Eq(largest, zero);
    hn::Store(hn::IfThenElse(none, zero, hn::Div(set(1.0F), inverse)), k_f, of_scales.scale + at);
    hn::Store(hn::IfThenElse(none, zero, inverse), k_f, of_scales.inverse + at);
    hn::Store(hn::IfThenElse(none, zero, set(32.0F)), k_f, of_scales.base + at);
  }
  store_scales<k_batch>(values, of_scales, out);
}

/// False where a sub-block keeps the levels that sweeps left, which nobody has any more: its stored
/// scale is zero beside the others'. The scalar code does these few.
HWY_INLINE bool has_all_levels(const float* scales, const float* inverse) {
  FloatM lost = hn::FirstN(k_f, 0);
  for (std::size_t j = 0; j < k_subs; j += hn::Lanes(k_f)) {
    const FloatM swept = hn::Gt(hn::LoadU(k_f, inverse + j), hn::Zero(k_f));
    lost = hn::Or(lost, hn::And(swept, hn::Eq(hn::LoadU(k_f, scales + j), hn::Zero(k_f))));
  }
  return hn::AllFalse(k_f, lost);
}

// With importance -------------------------------------------------------------------------------

/// Weights of tile t: importance times the root of twice the mean square plus the weight's square.
/// `sums` gets each sub-block's sum of weights.
HWY_INLINE void weigh_q3(Tile& tile, const float* squares, std::size_t t, float* sums) {
  alignas(64) float sigma2[k_tile];
  for (std::size_t lane = 0; lane < k_tile; ++lane) {
    sigma2[lane] = 2.0F * squares[t * k_in_tile + lane / k_subs] / 256.0F;
  }
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    const FloatV sigma = hn::Load(k_f, sigma2 + at);
    FloatV sum = hn::Zero(k_f);
    for (std::size_t i = at; i < k_sub * k_tile; i += k_tile) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      const FloatV root = hn::Sqrt(hn::Add(sigma, hn::Mul(x, x)));
      const FloatV w = hn::Mul(hn::Load(k_f, tile.weight + i), root);
      hn::Store(w, k_f, tile.weight + i);
      sum = hn::Add(sum, w);
    }
    hn::Store(sum, k_f, sums + at);
  }
}

/// The scales of the batch and their weights, super-blocks in lanes, and their own search.
HWY_INLINE void weighted_q3_scales(const SymmetricFound* found, const float* sums, Tile& tile,
                                   Q3Scales& out) {
  SymmetricFound of_scales;
  const float* from[k_tile];
  const float* weights[k_tile];
  for (std::size_t s = 0; s < k_tile; ++s) {
    const std::size_t block = s % k_batch; // the upper half of the lanes repeats the lower
    from[s] = found[block / k_in_tile].scale + (block % k_in_tile) * k_subs;
    weights[s] = sums + block * k_subs;
  }
  transpose<k_tile>(from, k_subs, tile.x);
  transpose<k_tile>(weights, k_subs, tile.weight);
  multiply_weights<k_sub>(tile);
  symmetric_search<k_sub>(tile, 32, of_scales);
  store_scales<k_tile>(tile.x, of_scales, out);
}

HWY_INLINE void weighted_search(const Batch& batch, SymmetricFound* found, Q3Scales& scales) {
  Tile tile;
  alignas(64) float sums[k_batch * k_subs];
  float squares[k_batch];
  const float* lanes[k_tile];
  sums_of_squares(batch.x, k_super, batch.count, squares);
  for (std::size_t t = 0; t < k_tiles; ++t) {
    lanes_of(batch.x, t, lanes);
    transpose<k_tile>(lanes, k_sub, tile.x);
    lanes_of(batch.importance, t, lanes);
    transpose<k_tile>(lanes, k_sub, tile.weight);
    weigh_q3(tile, squares, t, sums + t * k_tile);
    multiply_weights<k_sub>(tile);
    symmetric_search<k_sub>(tile, k_q3_levels, found[t]);
  }
  weighted_q3_scales(found, sums, tile, scales);
}

template <bool Weighted>
void quantize_q3_batch(const Batch& batch, std::byte* out) {
  SymmetricFound found[k_tiles];
  Q3Scales scales;
  if constexpr (Weighted) {
    weighted_search(batch, found, scales);
  } else {
    sweep_search(batch, found);
    plain_q3_scales(found, scales);
  }
  for (std::size_t s = 0; s < batch.count; ++s) {
    std::byte* const to = out + s * k_q3_bytes;
    const SymmetricFound& in = found[s / k_in_tile];
    const std::size_t at = (s % k_in_tile) * k_subs;
    const float* const stored = scales.scale + s * k_subs;
    bool sure = !batch.odd[s] && all_within(in.scale + at, k_subs, k_largest) &&
                all_within(stored, k_subs, k_largest);
    if constexpr (!Weighted) sure = sure && has_all_levels(stored, in.inverse + at);
    if (HWY_LIKELY(sure)) {
      encode_q3(batch.x[s], s, scales, found, reinterpret_cast<std::uint8_t*>(to));
    } else {
      scalar_codec(TensorType::q3_k).quantize(batch.x[s], 1, k_super, batch.importance[s], to);
    }
  }
}

void quantize_q3(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                 const float* importance, std::byte* out) {
  const std::uint64_t blocks = rows * row_elements / k_super;
  Batch batch;
  for (std::uint64_t first = 0; first < blocks; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, blocks - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    std::byte* const to = out + first * k_q3_bytes;
    if (importance == nullptr) {
      quantize_q3_batch<false>(batch, to);
    } else {
      quantize_q3_batch<true>(batch, to);
    }
  }
}

KernelFamily q3_k_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::q3_k, quantize_q3, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(q3_k_kernels, q3_k_family);
} // namespace modeld::quantize
#endif
