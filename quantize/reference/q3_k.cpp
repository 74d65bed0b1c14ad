// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/k_scales.hpp"
#include "quantize/reference/rounding.hpp"
#include "quantize/reference/scale_search.hpp"

#include <algorithm>
#include <cmath>

// Q3_K: 3.4375 bits. 16 sub-blocks with signed scales of 6 bits, levels -4..3. Without importance:
// error weighted by x^2, one start and sweeps, and scales rounded on the one of largest magnitude.
// With it: w = importance * sqrt(2 * mean x^2 of the super-block + x^2), 19 candidates, and the
// same search for the scales, weighted by the sums of w. Then the levels are rounded again to what
// the stored scales say.

namespace modeld::quantize::reference {
namespace {

constexpr std::size_t k_subs = 16;
constexpr std::size_t k_sub = 16;
using SignedLevels = std::array<std::int8_t, k_super>;

void round_to_stored(const float* x, SignedLevels& levels, const BlockQ3K& y) {
  for (std::size_t j = 0; j < k_subs; ++j) {
    const float d = y.d.value() * static_cast<float>(unpack_q3_scale(j, y.scales) - 32);
    if (d == 0) continue;
    for (std::size_t i = k_sub * j; i < k_sub * (j + 1); ++i) {
      levels[i] = static_cast<std::int8_t>(std::clamp(nearest_int(x[i] / d), -4, 3) + 4);
    }
  }
}

void pack(const SignedLevels& levels, BlockQ3K& y) {
  SuperLevels low;
  y.hmask = {};
  for (std::size_t i = 0; i < k_super; ++i) {
    const int level = levels[i];
    const int high = level > 3 ? 1 : 0;
    y.hmask[i % 32] = static_cast<std::uint8_t>(y.hmask[i % 32] | (high << (i / 32)));
    low[i] = static_cast<std::uint8_t>(level - 4 * high);
  }
  pack_pairs(low, y.qs);
}

void quantize_plain(const float* x, BlockQ3K& y) {
  SignedLevels levels;
  std::array<float, k_subs> scales;
  float magnitude = 0;
  float largest = 0;
  for (std::size_t j = 0; j < k_subs; ++j) {
    scales[j] = fit_signed_by_sweeps({x + k_sub * j, k_sub}, 4, levels.data() + k_sub * j);
    if (std::fabs(scales[j]) > magnitude) {
      magnitude = std::fabs(scales[j]);
      largest = scales[j];
    }
  }
  y.scales = {};
  if (largest != 0) {
    const float inverse = -32.0F / largest;
    for (std::size_t j = 0; j < k_subs; ++j) {
      const auto level = static_cast<std::int8_t>(nearest_int(inverse * scales[j]) & 0xFF);
      pack_q3_scale(j, std::clamp(int{level}, -32, 31) + 32, y.scales);
    }
    y.d.set(1 / inverse);
  } else {
    y.d.set(0.0F);
  }
  round_to_stored(x, levels, y);
  pack(levels, y);
}

void quantize_weighted(const float* x, const float* importance, BlockQ3K& y) {
  SignedLevels levels;
  std::array<float, k_subs> scales;
  std::array<float, k_subs> sub_weights;
  const float sigma2 = 2 * sum_of_squares({x, k_super}) / 256.0F;
  for (std::size_t j = 0; j < k_subs; ++j) {
    const std::span<const float> sub(x + k_sub * j, k_sub);
    std::array<float, k_sub> weights;
    sub_weights[j] = importance_weights(sub, importance + k_sub * j, sigma2, weights.data());
    scales[j] = fit_signed(sub, 4, weights.data(), levels.data() + k_sub * j);
  }
  std::array<std::int8_t, k_subs> stored;
  y.scales = {};
  y.d.set(fit_signed(scales, 32, sub_weights.data(), stored.data()));
  for (std::size_t j = 0; j < k_subs; ++j) {
    pack_q3_scale(j, stored[j], y.scales);
  }
  round_to_stored(x, levels, y);
  pack(levels, y);
}

void decode(const BlockQ3K& y, float* x) {
  for (std::size_t i = 0; i < k_super; ++i) {
    const float d = y.d.value() * static_cast<float>(unpack_q3_scale(i / k_sub, y.scales) - 32);
    const int high = (y.hmask[i % 32] >> (i / 32)) & 1;
    x[i] = d * static_cast<float>(unpack_pair(i, y.qs) - (high != 0 ? 0 : 4));
  }
}

} // namespace

const RowCodec q3_k_codec{TensorType::q3_k, ImportanceUse::optional,
                          quantize_blocks<BlockQ3K, quantize_plain, quantize_weighted>,
                          dequantize_blocks<BlockQ3K, decode>};

} // namespace modeld::quantize::reference
