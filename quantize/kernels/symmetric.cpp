// SPDX-License-Identifier: Apache-2.0

// Q3_K and Q6_K: 16 sub-blocks of 16 with a scale each, quantized in its turn. Layouts and error
// criteria: quantize/reference/.

#include "quantize/kernels/table.hpp"

#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/symmetric.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/symmetric_search-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily symmetric_family() {
  return {HWY_TARGET, {}};
}

#else

constexpr std::size_t k_sub = 16;
constexpr std::size_t k_subs = 16;
constexpr std::size_t k_in_tile = k_tile / k_subs;
constexpr std::size_t k_tiles = k_batch / k_in_tile;

using Tile = SymmetricTile<k_sub>;

/// Pointers to the sub-blocks of tile t, one for each lane.
HWY_INLINE void lanes_of(const float* const* blocks, std::size_t t, const float** lanes) {
  for (std::size_t lane = 0; lane < k_tile; ++lane) {
    lanes[lane] = blocks[t * k_in_tile + lane / k_subs] + k_sub * (lane % k_subs);
  }
}

HWY_INLINE void square_weights(Tile& tile) {
  for (std::size_t i = 0; i < k_sub * k_tile; i += hn::Lanes(k_f)) {
    const FloatV x = hn::Load(k_f, tile.x + i);
    hn::Store(hn::Mul(x, x), k_f, tile.weight + i);
  }
}

/// Levels of one super-block: with the quantized scales where they are not zero, else the search's.
HWY_INLINE void encode_levels(const float* x, const float* scales, const SymmetricFound& found,
                              std::size_t at, std::int32_t levels, std::uint8_t* out) {
  for (std::size_t j = 0; j < k_subs; ++j) {
    const std::size_t first = j * k_sub;
    if (scales[j] != 0.0F) {
      levels_of(x + first, k_sub, scales[j], 0.0F, -levels, levels - 1, out + first);
      continue;
    }
    const FloatV inverse = set(found.inverse[at + j]);
    const IntV base = hn::Set(k_i, static_cast<std::int32_t>(found.base[at + j]));
    for (std::size_t i = first; i < first + k_sub; i += hn::Lanes(k_f)) {
      const IntV level = nearest_int(hn::Mul(inverse, hn::LoadU(k_f, x + i)));
      store_bytes(hn::Add(base, clamp(level, -levels, levels - 1)), out + i);
    }
  }
}

// Q6_K -------------------------------------------------------------------------------------------

constexpr std::size_t k_q6_bytes = 210; ///< 128 low nibbles' bytes, 64 of high bits, 16 scales, d

/// Low nibbles and high bit pairs of 128 levels.
HWY_INLINE void pack_q6_half(const std::uint8_t* levels, std::uint8_t* low, std::uint8_t* high) {
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto nibble = hn::Set(d, 15);
  for (std::size_t i = 0; i < 64; i += 16) {
    const auto first = hn::And(hn::LoadU(d, levels + i), nibble);
    hn::StoreU(hn::Or(first, hn::ShiftLeft<4>(hn::LoadU(d, levels + 64 + i))), d, low + i);
  }
  std::uint8_t pairs[128];
  for (std::size_t i = 0; i < 128; i += 16) {
    hn::StoreU(hn::ShiftRight<4>(hn::LoadU(d, levels + i)), d, pairs + i);
  }
  pack_quarters(pairs, high);
}

HWY_INLINE void encode_q6(const float* x, const SymmetricFound& found, std::size_t at,
                          std::uint8_t* out) {
  float largest = 0.0F;
  float magnitude = 0.0F;
  for (std::size_t j = at; j < at + k_subs; ++j) {
    const float size = std::fabs(found.scale[j]);
    if (size > magnitude) {
      magnitude = size;
      largest = found.scale[j];
    }
  }
  if (magnitude < k_tiny_group) {
    std::memset(out, 0, k_q6_bytes);
    return;
  }
  const float inverse = -128.0F / largest;
  const std::uint16_t d = reference::f32_to_f16(1.0F / inverse);
  const float scale = reference::f16_to_f32(d);
  float scales[k_subs];
  for (std::size_t j = 0; j < k_subs; ++j) {
    const auto quantized =
        static_cast<std::int8_t>(std::min(127, nearest_int(inverse * found.scale[at + j])));
    std::memcpy(out + 192 + j, &quantized, 1);
    scales[j] = scale * static_cast<float>(quantized);
  }
  alignas(64) std::uint8_t levels[k_super];
  encode_levels(x, scales, found, at, 32, levels);
  pack_q6_half(levels, out, out + 128);
  pack_q6_half(levels + 128, out + 64, out + 160);
  std::memcpy(out + 208, &d, 2);
}

void quantize_q6(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                 const float* importance, std::byte* out) {
  const std::uint64_t blocks = rows * row_elements / k_super;
  Batch batch;
  Tile tile;
  SymmetricFound found;
  const float* lanes[k_tile];
  for (std::uint64_t first = 0; first < blocks; first += k_in_tile) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_in_tile, blocks - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    lanes_of(batch.x, 0, lanes);
    transpose<k_tile>(lanes, k_sub, tile.x);
    if (importance != nullptr) {
      lanes_of(batch.importance, 0, lanes);
      transpose<k_tile>(lanes, k_sub, tile.weight);
    } else {
      square_weights(tile);
    }
    multiply_weights<k_sub>(tile);
    symmetric_search<k_sub>(tile, 32, found);
    for (std::size_t s = 0; s < count; ++s) {
      std::byte* const to = out + (first + s) * k_q6_bytes;
      if (batch.odd[s]) {
        scalar_codec(TensorType::q6_k).quantize(batch.x[s], 1, k_super, batch.importance[s], to);
      } else {
        encode_q6(batch.x[s], found, s * k_subs, reinterpret_cast<std::uint8_t*>(to));
      }
    }
  }
}

// Q3_K -------------------------------------------------------------------------------------------

constexpr std::size_t k_q3_bytes = 110; ///< 32 high bits, 64 low pairs, 12 scales, d
constexpr std::int32_t k_q3_levels = 4;

/// 16 scales of six bits, 0..63, into twelve bytes.
HWY_INLINE void pack_q3_scales(const std::uint8_t* scales, std::uint8_t* out) {
  std::memset(out, 0, 12);
  for (std::size_t j = 0; j < k_subs; ++j) {
    const auto nibble = static_cast<std::uint8_t>((scales[j] & 15) << (j < 8 ? 0 : 4));
    out[j % 8] = static_cast<std::uint8_t>(out[j % 8] | nibble);
    out[8 + j % 4] = static_cast<std::uint8_t>(out[8 + j % 4] | (scales[j] >> 4) << (2 * (j / 4)));
  }
}

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

/// One try for weight i; the lanes whose level moved.
HWY_INLINE FloatM refine_level(const Tile& tile, std::size_t i, float* HWY_RESTRICT level,
                               FloatV& sum_lx, FloatV& sum_l2) {
  const FloatV zero = hn::Zero(k_f);
  const FloatV x = hn::Load(k_f, tile.x + i);
  const FloatV w = hn::Load(k_f, tile.weight + i);
  const FloatV wx = hn::Load(k_f, tile.weighted_x + i);
  const FloatV old_l = hn::Load(k_f, level + i);
  FloatV lx = hn::Sub(sum_lx, hn::Mul(wx, old_l));
  FloatV l2 = hn::Sub(sum_l2, hn::Mul(hn::Mul(w, old_l), old_l));
  const IntV nearest = nearest_int(hn::Div(hn::Mul(x, l2), lx));
  const FloatV new_l = hn::ConvertTo(k_f, clamp(nearest, -k_q3_levels, k_q3_levels - 1));
  const FloatM moved = hn::And(hn::Gt(lx, zero), hn::Ne(new_l, old_l));
  if (hn::AllFalse(k_f, moved)) return moved;
  lx = hn::Add(lx, hn::Mul(wx, new_l));
  l2 = hn::Add(l2, hn::Mul(hn::Mul(w, new_l), new_l));
  const FloatV left = hn::Mul(hn::Mul(lx, lx), sum_l2);
  const FloatV right = hn::Mul(hn::Mul(sum_lx, sum_lx), l2);
  const FloatM better = hn::And(hn::And(moved, hn::Gt(l2, zero)), hn::Gt(left, right));
  hn::Store(hn::IfThenElse(better, new_l, old_l), k_f, level + i);
  sum_lx = hn::IfThenElse(better, lx, sum_lx);
  sum_l2 = hn::IfThenElse(better, l2, sum_l2);
  return better;
}

/// First levels of the plain inverse scale, and their sums.
HWY_INLINE void first_levels(const Tile& tile, std::size_t at, FloatV inverse, float* level,
                             FloatV& sum_lx, FloatV& sum_l2) {
  sum_lx = sum_l2 = hn::Zero(k_f);
  for (std::size_t i = at; i < k_sub * k_tile; i += k_tile) {
    const FloatV rounded = hn::Round(hn::Mul(inverse, hn::Load(k_f, tile.x + i)));
    const FloatV bottom = set(static_cast<float>(-k_q3_levels));
    const FloatV l = hn::Max(bottom, hn::Min(set(static_cast<float>(k_q3_levels - 1)), rounded));
    hn::Store(l, k_f, level + i);
    sum_lx = hn::Add(sum_lx, hn::Mul(hn::Load(k_f, tile.weighted_x + i), l));
    sum_l2 = hn::Add(sum_l2, hn::Mul(hn::Mul(hn::Load(k_f, tile.weight + i), l), l));
  }
}

/// The search without importance. Levels stay in `level` (by lane, -4..3).
HWY_NOINLINE void refine_search(const Tile& tile, float* level, SymmetricFound& found) {
  constexpr int k_tries = 5; // as the reference
  const std::size_t lanes = hn::Lanes(k_f);
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_tile; at += 2 * lanes) {
    FloatV size_a, size_b, lx_a, l2_a, lx_b, l2_b;
    const FloatV max_a = largest_weight<k_sub>(tile.x + at, size_a);
    const FloatV max_b = largest_weight<k_sub>(tile.x + at + lanes, size_b);
    const FloatV top = set(static_cast<float>(-k_q3_levels));
    first_levels(tile, at, hn::Div(top, max_a), level, lx_a, l2_a);
    first_levels(tile, at + lanes, hn::Div(top, max_b), level, lx_b, l2_b);
    for (int t = 0; t < k_tries; ++t) {
      FloatM any = hn::FirstN(k_f, 0);
      for (std::size_t i = at; i < k_sub * k_tile; i += k_tile) {
        any = hn::Or(any, refine_level(tile, i, level, lx_a, l2_a));
        any = hn::Or(any, refine_level(tile, i + lanes, level, lx_b, l2_b));
      }
      if (hn::AllFalse(k_f, any)) break;
    }
    const FloatV tiny = set(k_tiny_group);
    const FloatV scale_a = hn::IfThenElse(hn::Gt(l2_a, zero), hn::Div(lx_a, l2_a), zero);
    const FloatV scale_b = hn::IfThenElse(hn::Gt(l2_b, zero), hn::Div(lx_b, l2_b), zero);
    store_symmetric(found, at, k_q3_levels, hn::Lt(size_a, tiny), scale_a, zero);
    store_symmetric(found, at + lanes, k_q3_levels, hn::Lt(size_b, tiny), scale_b, zero);
  }
}

/// Scales without importance: the largest by magnitude becomes -32, the others follow.
HWY_INLINE std::uint16_t quantize_q3_scales(const float* scales, std::uint8_t* levels) {
  float largest = 0.0F;
  float magnitude = 0.0F;
  for (std::size_t j = 0; j < k_subs; ++j) {
    const float size = std::fabs(scales[j]);
    if (size > magnitude) {
      magnitude = size;
      largest = scales[j];
    }
  }
  std::memset(levels, 0, k_subs);
  if (largest == 0.0F) return 0;
  const float inverse = -32.0F / largest;
  for (std::size_t j = 0; j < k_subs; ++j) {
    const auto level = static_cast<std::int8_t>(nearest_int(inverse * scales[j]));
    levels[j] = static_cast<std::uint8_t>(std::clamp<int>(level, -32, 31) + 32);
  }
  return reference::f32_to_f16(1.0F / inverse);
}

/// `levels`: scales as stored. `searched`: where the search left levels, by lane; null where they
/// follow from its inverse scale.
HWY_INLINE void encode_q3(const float* x, std::uint16_t d, const std::uint8_t* quantized,
                          const SymmetricFound& found, std::size_t at, const float* searched,
                          std::uint8_t* out) {
  alignas(64) std::uint8_t levels[k_super];
  float scales[k_subs];
  const float scale = reference::f16_to_f32(d);
  for (std::size_t j = 0; j < k_subs; ++j) {
    scales[j] = scale * static_cast<float>(quantized[j] - 32);
  }
  encode_levels(x, scales, found, at, k_q3_levels, levels);
  for (std::size_t j = 0; searched != nullptr && j < k_subs; ++j) {
    if (scales[j] != 0.0F) continue;
    for (std::size_t i = 0; i < k_sub; ++i) {
      const float level = found.base[at + j] == 0.0F ? 0.0F : searched[i * k_tile + at + j] + 4.0F;
      levels[j * k_sub + i] = static_cast<std::uint8_t>(level);
    }
  }
  pack_q3(levels, out);
  pack_q3_scales(quantized, out + 96);
  std::memcpy(out + 108, &d, 2);
}

void quantize_q3_plain(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                       std::byte* out) {
  const std::uint64_t blocks = rows * row_elements / k_super;
  Batch batch;
  Tile tile;
  SymmetricFound found;
  alignas(64) float level[k_sub * k_tile];
  const float* lanes[k_tile];
  for (std::uint64_t first = 0; first < blocks; first += k_in_tile) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_in_tile, blocks - first));
    fill_batch(batch, in, nullptr, row_elements, first, count);
    lanes_of(batch.x, 0, lanes);
    transpose<k_tile>(lanes, k_sub, tile.x);
    square_weights(tile);
    multiply_weights<k_sub>(tile);
    refine_search(tile, level, found);
    for (std::size_t s = 0; s < count; ++s) {
      std::byte* const to = out + (first + s) * k_q3_bytes;
      if (batch.odd[s]) {
        scalar_codec(TensorType::q3_k).quantize(batch.x[s], 1, k_super, nullptr, to);
        continue;
      }
      std::uint8_t scales[k_subs];
      const std::uint16_t d = quantize_q3_scales(found.scale + s * k_subs, scales);
      encode_q3(batch.x[s], d, scales, found, s * k_subs, level,
                reinterpret_cast<std::uint8_t*>(to));
    }
  }
}

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
HWY_INLINE void search_q3_scales(const SymmetricFound* found, const float* sums,
                                 SymmetricFound& of_scales, Tile& tile) {
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
}

void quantize_q3_batch(Batch& batch, std::byte* out) {
  Tile tile;
  SymmetricFound found[k_tiles];
  SymmetricFound of_scales;
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
  search_q3_scales(found, sums, of_scales, tile);
  for (std::size_t s = 0; s < batch.count; ++s) {
    std::byte* const to = out + s * k_q3_bytes;
    const SymmetricFound& in = found[s / k_in_tile];
    const std::size_t at = (s % k_in_tile) * k_subs;
    const bool sure = all_within(in.scale + at, k_subs, k_largest);
    if (batch.odd[s] || !sure) {
      scalar_codec(TensorType::q3_k).quantize(batch.x[s], 1, k_super, batch.importance[s], to);
      continue;
    }
    std::uint8_t scales[k_subs];
    for (std::size_t j = 0; j < k_subs; ++j) {
      const int level = nearest_int(of_scales.inverse[s] * in.scale[at + j]);
      scales[j] = static_cast<std::uint8_t>(static_cast<int>(of_scales.base[s]) +
                                            std::clamp(level, -32, 31));
    }
    const std::uint16_t d = reference::f32_to_f16(of_scales.scale[s]);
    encode_q3(batch.x[s], d, scales, in, at, nullptr, reinterpret_cast<std::uint8_t*>(to));
  }
}

void quantize_q3(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                 const float* importance, std::byte* out) {
  if (importance == nullptr) {
    quantize_q3_plain(in, rows, row_elements, out);
    return;
  }
  const std::uint64_t blocks = rows * row_elements / k_super;
  Batch batch;
  for (std::uint64_t first = 0; first < blocks; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, blocks - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    quantize_q3_batch(batch, out + first * k_q3_bytes);
  }
}

KernelFamily symmetric_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::q3_k, quantize_q3, nullptr},
      Kernel{TensorType::q6_k, quantize_q6, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(symmetric_kernels, symmetric_family);
} // namespace modeld::quantize
#endif
