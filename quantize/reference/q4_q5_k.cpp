// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/k_scales.hpp"
#include "quantize/reference/rounding.hpp"
#include "quantize/reference/scale_search.hpp"

#include <algorithm>

// Q4_K (4.5 bits) and Q5_K (5.5 bits): 8 sub-blocks of 32 with an affine fit each, levels 0..15 and
// 0..31; scale and min cut to 6 bits of a super-block scale; then levels rounded again to what is
// stored. Without importance: w = sqrt(mean x^2 of the sub-block) + |x|, 21 candidates (Q4_K) or 16
// (Q5_K), and the super-block scale is the largest over 63. With it: w = importance * sqrt(2 * mean
// x^2 of the super-block + x^2), 37 candidates, and a search for the super-block scale, weighted
// by the sums of w.

namespace modeld::quantize::reference {
namespace {

constexpr std::size_t k_subs = 8;
constexpr std::size_t k_sub = 32;

struct Fits {
  std::array<float, k_subs> scales;
  std::array<float, k_subs> mins;
  SuperLevels levels;
};

float largest_or_zero(const std::array<float, k_subs>& values) {
  float max = 0;
  for (const float v : values) {
    if (v > max) max = v;
  }
  return max;
}

/// 6 bits; a level above 255 wraps before it is bounded, as in the reference.
std::uint8_t six_bits(float value) {
  const auto level = static_cast<std::uint8_t>(nearest_int(value) & 0xFF);
  return std::min(std::uint8_t{63}, level);
}

template <class Block>
void fit_plain(const float* x, int nmax, AffineGrid grid, Fits& fits, Block& y) {
  for (std::size_t j = 0; j < k_subs; ++j) {
    const std::span<const float> sub(x + k_sub * j, k_sub);
    std::array<float, k_sub> weights;
    magnitude_weights(sub, weights.data());
    const AffineFit fit = fit_affine(sub, weights.data(), nmax, grid, ErrorNorm::squared,
                                     fits.levels.data() + k_sub * j);
    fits.scales[j] = fit.scale;
    fits.mins[j] = fit.min;
  }
  const float max_scale = largest_or_zero(fits.scales);
  const float max_min = largest_or_zero(fits.mins);
  const float inverse_scale = max_scale > 0 ? 63.0F / max_scale : 0.0F;
  const float inverse_min = max_min > 0 ? 63.0F / max_min : 0.0F;
  for (std::size_t j = 0; j < k_subs; ++j) {
    pack_scale_min(j,
                   {six_bits(inverse_scale * fits.scales[j]), six_bits(inverse_min * fits.mins[j])},
                   y.scales);
  }
  y.d.set(max_scale / 63.0F);
  y.dmin.set(max_min / 63.0F);
}

template <class Block>
void fit_weighted(const float* x, const float* importance, int nmax, Fits& fits, Block& y) {
  std::array<float, k_subs> sub_weights;
  const float sigma2 = 2 * sum_of_squares({x, k_super}) / 256.0F;
  for (std::size_t j = 0; j < k_subs; ++j) {
    const std::span<const float> sub(x + k_sub * j, k_sub);
    std::array<float, k_sub> weights;
    sub_weights[j] = importance_weights(sub, importance + k_sub * j, sigma2, weights.data());
    const AffineFit fit = fit_affine(sub, weights.data(), nmax, {-0.9F, 0.05F, 36},
                                     ErrorNorm::squared, fits.levels.data() + k_sub * j);
    fits.scales[j] = fit.scale;
    fits.mins[j] = fit.min;
  }
  std::array<std::uint8_t, k_subs> scales;
  std::array<std::uint8_t, k_subs> mins;
  y.d.set(fit_unsigned(fits.scales, 63, sub_weights.data(), scales.data()));
  y.dmin.set(fit_unsigned(fits.mins, 63, sub_weights.data(), mins.data()));
  for (std::size_t j = 0; j < k_subs; ++j) {
    pack_scale_min(j, {scales[j], mins[j]}, y.scales);
  }
}

template <class Block>
void round_to_stored(const float* x, int nmax, SuperLevels& levels, const Block& y) {
  for (std::size_t j = 0; j < k_subs; ++j) {
    const ScaleMin stored = unpack_scale_min(j, y.scales);
    const float d = y.d.value() * static_cast<float>(stored.scale);
    if (d == 0) continue;
    const float min = y.dmin.value() * static_cast<float>(stored.min);
    for (std::size_t i = k_sub * j; i < k_sub * (j + 1); ++i) {
      levels[i] = static_cast<std::uint8_t>(std::clamp(nearest_int((x[i] + min) / d), 0, nmax));
    }
  }
}

/// Low nibbles of elements 64 k + l and 64 k + 32 + l.
void pack_nibbles(const SuperLevels& levels, Bytes<128>& qs) {
  for (std::size_t i = 0; i < k_super; i += 64) {
    for (std::size_t l = 0; l < 32; ++l) {
      qs[i / 2 + l] =
          static_cast<std::uint8_t>((levels[i + l] & 0xF) | ((levels[i + l + 32] & 0xF) << 4));
    }
  }
}

int unpack_nibble(std::size_t i, const Bytes<128>& qs) {
  const std::uint8_t pair = qs[32 * (i / 64) + i % 32];
  return i % 64 < 32 ? pair & 0xF : pair >> 4;
}

void pack_fifth_bits(const SuperLevels& levels, Bytes<32>& qh) {
  qh = {};
  for (std::size_t i = 0; i < k_super; ++i) {
    qh[i % 32] = static_cast<std::uint8_t>(qh[i % 32] | ((levels[i] >> 4) << (i / 32)));
  }
}

constexpr AffineGrid k_q4_grid{-1.0F, 0.1F, 20};
constexpr AffineGrid k_q5_grid{-0.5F, 0.1F, 15};

void q4_plain(const float* x, BlockQ4K& y) {
  Fits fits;
  fit_plain(x, 15, k_q4_grid, fits, y);
  round_to_stored(x, 15, fits.levels, y);
  pack_nibbles(fits.levels, y.qs);
}

void q4_weighted(const float* x, const float* importance, BlockQ4K& y) {
  Fits fits;
  fit_weighted(x, importance, 15, fits, y);
  round_to_stored(x, 15, fits.levels, y);
  pack_nibbles(fits.levels, y.qs);
}

void finish_q5(const float* x, SuperLevels& levels, BlockQ5K& y) {
  round_to_stored(x, 31, levels, y);
  pack_fifth_bits(levels, y.qh);
  pack_nibbles(levels, y.qs);
}

void q5_plain(const float* x, BlockQ5K& y) {
  Fits fits;
  fit_plain(x, 31, k_q5_grid, fits, y);
  finish_q5(x, fits.levels, y);
}

void q5_weighted(const float* x, const float* importance, BlockQ5K& y) {
  Fits fits;
  fit_weighted(x, importance, 31, fits, y);
  finish_q5(x, fits.levels, y);
}

template <class Block>
float decode_one(const Block& y, std::size_t i, int level) {
  const ScaleMin stored = unpack_scale_min(i / k_sub, y.scales);
  const float d = y.d.value() * static_cast<float>(stored.scale);
  const float min = y.dmin.value() * static_cast<float>(stored.min);
  return d * static_cast<float>(level) - min;
}

void decode_q4(const BlockQ4K& y, float* x) {
  for (std::size_t i = 0; i < k_super; ++i) {
    x[i] = decode_one(y, i, unpack_nibble(i, y.qs));
  }
}

void decode_q5(const BlockQ5K& y, float* x) {
  for (std::size_t i = 0; i < k_super; ++i) {
    const int high = (y.qh[i % 32] >> (i / 32)) & 1;
    x[i] = decode_one(y, i, unpack_nibble(i, y.qs) + 16 * high);
  }
}

} // namespace

const RowCodec q4_k_codec{TensorType::q4_k, ImportanceUse::optional,
                          quantize_blocks<BlockQ4K, q4_plain, q4_weighted>,
                          dequantize_blocks<BlockQ4K, decode_q4>};
const RowCodec q5_k_codec{TensorType::q5_k, ImportanceUse::optional,
                          quantize_blocks<BlockQ5K, q5_plain, q5_weighted>,
                          dequantize_blocks<BlockQ5K, decode_q5>};

} // namespace modeld::quantize::reference
