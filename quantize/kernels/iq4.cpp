// SPDX-License-Identifier: Apache-2.0

// IQ4_NL and IQ4_XS: blocks of 32 with sixteen uneven values. One lane has one block. Layouts and
// error criterion: quantize/reference/iq4.cpp.

#include "quantize/kernels/table.hpp"
#include "quantize/reference/iq4_values.hpp"

#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/iq4.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/symmetric_search-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily iq4_family() {
  return {HWY_TARGET, {}};
}

#else

constexpr std::size_t k_block = 32;
constexpr int k_tries = 7; // on each side of the plain scale, as the reference
using Tile = SymmetricTile<k_block>;
using reference::k_iq4_values;

/// Where value i + 1 becomes the nearest: halfway, which is exact. The definition compares the two
/// distances; near halfway both are exact too, so that `x >= threshold` decides as it does.
constexpr float threshold(std::size_t i) {
  return (k_iq4_values[i] + k_iq4_values[i + 1]) / 2.0F;
}

/// Sixteen bins of equal width over the thresholds, so placed that each bin has one threshold at
/// most, and that no threshold is nearer than 2 to an edge: rounding on the way to a bin does not
/// matter. `low` is the level at a bin's lower edge, `high` at its upper one.
struct Bins {
  static constexpr float k_first = -109.375F;
  static constexpr float k_width = 13.875F;
  std::array<std::uint8_t, 16> low{};
  std::array<std::uint8_t, 16> high{};

  constexpr Bins() {
    for (std::size_t bin = 0; bin < 16; ++bin) {
      const float start = k_first + static_cast<float>(bin) * k_width;
      low[bin] = bin == 0 ? 0 : below(start);
      high[bin] = bin == 15 ? 15 : below(start + k_width);
    }
  }
  static constexpr std::uint8_t below(float x) {
    std::uint8_t level = 0;
    while (level < 15 && threshold(level) <= x)
      ++level;
    return level;
  }
};
constexpr Bins k_bins;

HWY_INLINE IntV bin_of(FloatV x) {
  const FloatV scaled = hn::Mul(x, set(1.0F / Bins::k_width));
  const FloatV bin = hn::Add(scaled, set(-Bins::k_first / Bins::k_width));
  return hn::ConvertTo(k_i, hn::Min(hn::Max(bin, hn::Zero(k_f)), set(15.5F)));
}

#if HWY_TARGET == HWY_AVX3

/// The values at the two edges of each bin, by lanes: a vector holds all sixteen.
struct Values {
  alignas(64) float low[16];
  alignas(64) float high[16];
  alignas(64) float threshold[16];

  constexpr Values() : low(), high(), threshold() {
    for (std::size_t bin = 0; bin < 16; ++bin) {
      low[bin] = k_iq4_values[k_bins.low[bin]];
      high[bin] = k_iq4_values[k_bins.high[bin]];
      threshold[bin] = (low[bin] + high[bin]) / 2.0F;
    }
  }
};
alignas(64) constexpr Values k_values;

/// The value nearest to x. NaN cannot come here.
HWY_INLINE FloatV nearest_value(FloatV x) {
  const auto bin = hn::IndicesFromVec(k_f, bin_of(x));
  const FloatV limit = hn::TableLookupLanes(hn::Load(k_f, k_values.threshold), bin);
  const FloatV low = hn::TableLookupLanes(hn::Load(k_f, k_values.low), bin);
  const FloatV high = hn::TableLookupLanes(hn::Load(k_f, k_values.high), bin);
  return hn::IfThenElse(hn::Ge(x, limit), high, low);
}

#else

/// Looks each lane's bin up in sixteen signed bytes.
HWY_INLINE FloatV look_up(const std::int8_t* table, IntV top_byte_index) {
  const hn::Repartition<std::int8_t, Ints> bytes;
  const auto found =
      hn::TableLookupBytesOr0(hn::LoadDup128(bytes, table), hn::BitCast(bytes, top_byte_index));
  return hn::ConvertTo(k_f, hn::ShiftRight<24>(hn::BitCast(k_i, found)));
}

struct Values {
  alignas(16) std::int8_t low[16];
  alignas(16) std::int8_t high[16];

  constexpr Values() : low(), high() {
    for (std::size_t bin = 0; bin < 16; ++bin) {
      low[bin] = static_cast<std::int8_t>(k_iq4_values[k_bins.low[bin]]);
      high[bin] = static_cast<std::int8_t>(k_iq4_values[k_bins.high[bin]]);
    }
  }
};
alignas(16) constexpr Values k_values;

/// The value nearest to x. NaN cannot come here.
HWY_INLINE FloatV nearest_value(FloatV x) {
  // The index in the top byte of each lane; the others select zero.
  const IntV index = hn::Or(hn::ShiftLeft<24>(bin_of(x)), hn::Set(k_i, 0x00808080));
  const FloatV low = look_up(k_values.low, index);
  const FloatV high = look_up(k_values.high, index);
  return hn::IfThenElse(hn::Ge(hn::Add(x, x), hn::Add(low, high)), high, low);
}

#endif

HWY_INLINE IntV nearest_level(FloatV x) {
  IntV level = hn::Zero(k_i);
  for (std::size_t i = 0; i < 15; ++i) {
    // A true lane of a mask is -1.
    level = hn::Sub(level, hn::VecFromMask(k_i, hn::RebindMask(k_i, hn::Ge(x, set(threshold(i))))));
  }
  return level;
}

/// Adds w*q*x and w*q*q for the values nearest to inverse * x, weight by weight.
HWY_INLINE void value_sums(const Tile& tile, std::size_t at, FloatV inverse, FloatV& sum_qx,
                           FloatV& sum_q2) {
  sum_qx = sum_q2 = hn::Zero(k_f);
  for (std::size_t i = at; i < k_block * k_tile; i += k_tile) {
    const FloatV x = hn::Load(k_f, tile.x + i);
    const FloatV q = nearest_value(hn::Mul(inverse, x));
    const FloatV wq = hn::Mul(hn::Load(k_f, tile.weight + i), q);
    sum_qx = hn::Add(sum_qx, hn::Mul(wq, x));
    sum_q2 = hn::Add(sum_q2, hn::Mul(wq, q));
  }
}

/// The best scale of each lane; 0 where all weights are next to zero.
HWY_NOINLINE void search_scales(const Tile& tile, float* scales) {
  const FloatV zero = hn::Zero(k_f);
  const float lowest = k_iq4_values.front();
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    FloatV size, sum_qx, sum_q2;
    const FloatV max = largest_weight<k_block>(tile.x + at, size);
    const FloatV start = hn::Div(hn::Neg(max), set(lowest));
    value_sums(tile, at, hn::Div(set(1.0F), start), sum_qx, sum_q2);
    FloatV scale = hn::IfThenElse(hn::Gt(sum_q2, zero), hn::Div(sum_qx, sum_q2), zero);
    FloatV best = hn::Mul(scale, sum_qx);
    for (int s = -k_tries; s <= k_tries; ++s) {
      const FloatV inverse = hn::Div(set(static_cast<float>(s) + lowest), max);
      value_sums(tile, at, inverse, sum_qx, sum_q2);
      FloatV unused = inverse;
      keep_better(sum_qx, sum_q2, inverse, scale, best, unused);
    }
    const FloatM tiny = hn::Lt(size, set(k_tiny_group));
    hn::Store(hn::IfThenElse(tiny, zero, scale), k_f, scales + at);
  }
}

/// Weights: the squares, or importance times the root of sigma2 plus the square.
HWY_INLINE void weigh(Tile& tile, const float* const* importance, const float* sigma2) {
  if (importance != nullptr) transpose<k_tile>(importance, k_block, tile.weight);
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    const FloatV sigma = hn::Load(k_f, sigma2 + at);
    for (std::size_t i = at; i < k_block * k_tile; i += k_tile) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      FloatV w = hn::Mul(x, x);
      if (importance != nullptr) {
        w = hn::Mul(hn::Load(k_f, tile.weight + i), hn::Sqrt(hn::Add(sigma, w)));
      }
      hn::Store(w, k_f, tile.weight + i);
    }
  }
}

/// 32 levels for inverse * x: weight i with weight i + 16.
HWY_INLINE void pack_levels(const float* x, float inverse, std::uint8_t* out) {
  alignas(64) std::uint8_t levels[k_block];
  for (std::size_t i = 0; i < k_block; i += hn::Lanes(k_f)) {
    store_bytes(nearest_level(hn::Mul(set(inverse), hn::LoadU(k_f, x + i))), levels + i);
  }
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto high = hn::ShiftLeft<4>(hn::Load(d, levels + 16));
  hn::StoreU(hn::Or(hn::Load(d, levels), high), d, out);
}

/// Not where sums left the floats: then a level would be chosen for a NaN.
bool is_sure(float scale) {
  return std::fabs(scale) <= k_largest;
}

/// The 32 blocks of a tile from `first`, pointers repeated beyond the end.
struct TileOfBlocks {
  const float* x[k_tile];
  const float* importance[k_tile];
  bool weighted;

  TileOfBlocks(const float* in, const float* weights, std::uint64_t row_elements,
               std::uint64_t first, std::uint64_t blocks)
      : weighted(weights != nullptr) {
    const std::uint64_t in_row = row_elements / k_block;
    for (std::size_t lane = 0; lane < k_tile; ++lane) {
      const std::uint64_t b = std::min(first + lane, blocks - 1);
      x[lane] = in + b * k_block;
      importance[lane] = weighted ? weights + (b % in_row) * k_block : nullptr;
    }
  }

  const float* const* importance_or_null() const { return weighted ? importance : nullptr; }
};

// IQ4_NL -----------------------------------------------------------------------------------------

constexpr std::size_t k_nl_bytes = 18;

/// Twice the mean square of each lane's own block.
HWY_INLINE void block_sigma2(const Tile& tile, float* sigma2) {
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    FloatV sum = hn::Zero(k_f);
    for (std::size_t i = at; i < k_block * k_tile; i += k_tile) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      sum = hn::Add(sum, hn::Mul(x, x));
    }
    hn::Store(hn::Mul(sum, set(2.0F / 32.0F)), k_f, sigma2 + at);
  }
}

void quantize_nl(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                 const float* importance, std::byte* out) {
  const std::uint64_t blocks = rows * row_elements / k_block;
  Tile tile;
  alignas(64) float sigma2[k_tile];
  alignas(64) float scales[k_tile];
  for (std::uint64_t first = 0; first < blocks; first += k_tile) {
    const TileOfBlocks of(in, importance, row_elements, first, blocks);
    transpose<k_tile>(of.x, k_block, tile.x);
    block_sigma2(tile, sigma2);
    weigh(tile, of.importance_or_null(), sigma2);
    search_scales(tile, scales);
    for (std::size_t lane = 0; lane < std::min<std::uint64_t>(k_tile, blocks - first); ++lane) {
      std::byte* const to = out + (first + lane) * k_nl_bytes;
      if (!is_sure(scales[lane]) || !all_within(of.x[lane], k_block, k_largest)) {
        scalar_codec(TensorType::iq4_nl).quantize(of.x[lane], 1, k_block, of.importance[lane], to);
        continue;
      }
      reference::store_u16(to, reference::f32_to_f16(scales[lane]));
      const float inverse = scales[lane] != 0.0F ? 1.0F / scales[lane] : 0.0F;
      pack_levels(of.x[lane], inverse, reinterpret_cast<std::uint8_t*>(to) + 2);
    }
  }
}

// IQ4_XS -----------------------------------------------------------------------------------------

constexpr std::size_t k_xs_bytes = 136; ///< d, 16 bits of high scale bits, 4 of low, 128 of levels
constexpr std::size_t k_subs = 8;
constexpr std::size_t k_in_tile = k_tile / k_subs;

/// The scale of largest magnitude becomes -32, the others follow; levels are for the scale before
/// it is rounded to binary16.
HWY_INLINE void encode_xs(const float* x, const float* scales, std::uint8_t* out) {
  float largest = 0.0F;
  float magnitude = 0.0F;
  for (std::size_t j = 0; j < k_subs; ++j) {
    if (std::fabs(scales[j]) > magnitude) {
      magnitude = std::fabs(scales[j]);
      largest = scales[j];
    }
  }
  const float d = -largest / 32.0F;
  const float inverse = d != 0.0F ? 1.0F / d : 0.0F;
  const std::uint16_t d_half = reference::f32_to_f16(d);
  std::uint16_t high = 0;
  std::memset(out + 4, 0, 4);
  for (std::size_t j = 0; j < k_subs; ++j) {
    const int level = std::clamp(nearest_int(inverse * scales[j]), -32, 31);
    const float scale = d * static_cast<float>(level);
    pack_levels(x + j * k_block, scale != 0.0F ? 1.0F / scale : 0.0F, out + 8 + 16 * j);
    const auto stored = static_cast<unsigned>(level + 32);
    out[4 + j / 2] = static_cast<std::uint8_t>(out[4 + j / 2] | (stored & 15U) << (4 * (j % 2)));
    high = static_cast<std::uint16_t>(high | (stored >> 4) << (2 * j));
  }
  std::memcpy(out, &d_half, 2);
  std::memcpy(out + 2, &high, 2);
}

void quantize_xs(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                 const float* importance, std::byte* out) {
  const std::uint64_t supers = rows * row_elements / k_super;
  Batch batch;
  Tile tile;
  alignas(64) float sigma2[k_tile];
  alignas(64) float scales[k_tile];
  float squares[k_batch];
  for (std::uint64_t first = 0; first < supers; first += k_in_tile) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_in_tile, supers - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    sums_of_squares(batch.x, k_super, count, squares);
    for (std::size_t lane = 0; lane < k_tile; ++lane) {
      sigma2[lane] = squares[lane / k_subs] * (2.0F / 256.0F);
    }
    const TileOfBlocks of(in, importance, row_elements, first * k_subs, supers * k_subs);
    transpose<k_tile>(of.x, k_block, tile.x);
    weigh(tile, of.importance_or_null(), sigma2);
    search_scales(tile, scales);
    for (std::size_t s = 0; s < count; ++s) {
      std::byte* const to = out + (first + s) * k_xs_bytes;
      const float* const found = scales + s * k_subs;
      if (batch.odd[s] || !std::all_of(found, found + k_subs, is_sure)) {
        scalar_codec(TensorType::iq4_xs).quantize(batch.x[s], 1, k_super, batch.importance[s], to);
      } else {
        encode_xs(batch.x[s], found, reinterpret_cast<std::uint8_t*>(to));
      }
    }
  }
}

KernelFamily iq4_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::iq4_nl, quantize_nl, nullptr},
      Kernel{TensorType::iq4_xs, quantize_xs, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(iq4_kernels, iq4_family);
} // namespace modeld::quantize
#endif
