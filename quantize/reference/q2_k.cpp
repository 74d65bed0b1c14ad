// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/k_scales.hpp"
#include "quantize/reference/rounding.hpp"
#include "quantize/reference/scale_search.hpp"

#include <algorithm>
#include <cmath>

// Q2_K: 2.625 bits. Each of 16 sub-blocks gets the best affine fit to levels 0..3; then its scale
// and min are themselves cut to 4 bits of the largest one, and the levels are rounded again to what
// the cut scale says. Without importance the error is sum |x| |x - x'|, 16 candidates; with it
// sum w (x - x')^2, w = importance * sqrt(mean x^2 of the super-block + x^2), 37 candidates.

namespace modeld::quantize::reference {
namespace {

constexpr std::size_t k_subs = 16;
constexpr std::size_t k_sub = 16;

struct Fits {
  std::array<float, k_subs> scales;
  std::array<float, k_subs> mins;
  SuperLevels levels;
};

/// Rounds again with the scales as stored. A scale of zero keeps the levels of the search.
void round_to_stored(const float* x, Fits& fits, BlockQ2K& y) {
  for (std::size_t j = 0; j < k_subs; ++j) {
    const float d = y.d.value() * static_cast<float>(y.scales[j] & 0xF);
    if (d == 0) continue;
    const float min = y.dmin.value() * static_cast<float>(y.scales[j] >> 4);
    for (std::size_t i = k_sub * j; i < k_sub * (j + 1); ++i) {
      fits.levels[i] = static_cast<std::uint8_t>(std::clamp(nearest_int((x[i] + min) / d), 0, 3));
    }
  }
  pack_pairs(fits.levels, y.qs);
}

/// Nibbles by which `values` are multiples of what is returned.
float to_nibbles(const std::array<float, k_subs>& values, std::array<int, k_subs>& nibbles) {
  float max = 0;
  for (const float v : values) {
    if (v > max) max = v;
  }
  nibbles = {};
  if (!(max > 0)) return 0;
  const float inverse = 15.0F / max;
  for (std::size_t j = 0; j < k_subs; ++j) {
    nibbles[j] = nearest_int(inverse * values[j]);
  }
  return max / 15.0F;
}

void quantize_plain(const float* x, BlockQ2K& y) {
  Fits fits;
  for (std::size_t j = 0; j < k_subs; ++j) {
    const std::span<const float> sub(x + k_sub * j, k_sub);
    std::array<float, k_sub> weights;
    std::transform(sub.begin(), sub.end(), weights.begin(), [](float v) { return std::fabs(v); });
    const AffineFit fit = fit_affine(sub, weights.data(), 3, {-0.5F, 0.1F, 15}, ErrorNorm::absolute,
                                     fits.levels.data() + k_sub * j);
    fits.scales[j] = fit.scale;
    fits.mins[j] = fit.min;
  }
  std::array<int, k_subs> scales;
  std::array<int, k_subs> mins;
  y.d.set(to_nibbles(fits.scales, scales));
  y.dmin.set(to_nibbles(fits.mins, mins));
  for (std::size_t j = 0; j < k_subs; ++j) {
    y.scales[j] = static_cast<std::uint8_t>((scales[j] | (mins[j] << 4)) & 0xFF);
  }
  round_to_stored(x, fits, y);
}

void quantize_weighted(const float* x, const float* importance, BlockQ2K& y) {
  Fits fits;
  std::array<float, k_subs> sub_weights;
  const float sigma2 = sum_of_squares({x, k_super}) / 256.0F;
  for (std::size_t j = 0; j < k_subs; ++j) {
    const std::span<const float> sub(x + k_sub * j, k_sub);
    std::array<float, k_sub> weights;
    sub_weights[j] = importance_weights(sub, importance + k_sub * j, sigma2, weights.data());
    const AffineFit fit = fit_affine(sub, weights.data(), 3, {-0.9F, 0.05F, 36}, ErrorNorm::squared,
                                     fits.levels.data() + k_sub * j);
    fits.scales[j] = fit.scale;
    fits.mins[j] = fit.min;
  }
  std::array<std::uint8_t, k_subs> scales;
  std::array<std::uint8_t, k_subs> mins;
  y.d.set(fit_unsigned(fits.scales, 15, sub_weights.data(), scales.data()));
  y.dmin.set(fit_unsigned(fits.mins, 15, sub_weights.data(), mins.data()));
  for (std::size_t j = 0; j < k_subs; ++j) {
    y.scales[j] = static_cast<std::uint8_t>((scales[j] | (mins[j] << 4)) & 0xFF);
  }
  round_to_stored(x, fits, y);
}

void decode(const BlockQ2K& y, float* x) {
  for (std::size_t i = 0; i < k_super; ++i) {
    const std::uint8_t scale = y.scales[i / k_sub];
    const float d = y.d.value() * static_cast<float>(scale & 0xF);
    const float min = y.dmin.value() * static_cast<float>(scale >> 4);
    x[i] = d * static_cast<float>(unpack_pair(i, y.qs)) - min;
  }
}

} // namespace

const RowCodec q2_k_codec{TensorType::q2_k, ImportanceUse::optional,
                          quantize_blocks<BlockQ2K, quantize_plain, quantize_weighted>,
                          dequantize_blocks<BlockQ2K, decode>};

} // namespace modeld::quantize::reference
