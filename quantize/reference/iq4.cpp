// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/iq4_values.hpp"
#include "quantize/reference/rounding.hpp"
#include "quantize/reference/scale_search.hpp"

#include <algorithm>
#include <cmath>
#include <span>

// IQ4_NL (4.5 bits) and IQ4_XS (4.25 bits): 16 unevenly spaced values, denser around zero. For each
// 32 elements 16 candidate scales compete under sum w (x - x')^2; w = x^2, or importance * sqrt(2 *
// mean of x^2 over the block + x^2). IQ4_XS then cuts the scales to 6 bits of the one of largest
// magnitude. Levels are chosen again for the scale as it was before it became a binary16.

namespace modeld::quantize::reference {
namespace {

constexpr std::size_t k_sub = 32;
constexpr int k_tries = 7;
using Weights = std::array<float, k_sub>;

Weights weights_of(std::span<const float> x, const float* importance, float sigma2) {
  Weights weights;
  for (std::size_t j = 0; j < k_sub; ++j) {
    weights[j] =
        importance != nullptr ? importance[j] * std::sqrt(sigma2 + x[j] * x[j]) : x[j] * x[j];
  }
  return weights;
}

struct Sums {
  float qx = 0;
  float q2 = 0;
};

Sums sums_for(std::span<const float> x, const Weights& weights, float inverse) {
  Sums sums;
  for (std::size_t j = 0; j < k_sub; ++j) {
    const float q = k_iq4_values[nearest_iq4_level(inverse * x[j])];
    sums.qx += weights[j] * q * x[j];
    sums.q2 += weights[j] * q * q;
  }
  return sums;
}

float best_scale(std::span<const float> x, const Weights& weights) {
  float magnitude = 0;
  float max = 0;
  for (const float v : x) {
    if (std::fabs(v) > magnitude) {
      magnitude = std::fabs(v);
      max = v;
    }
  }
  if (magnitude < k_zero_eps) return 0;
  const float lowest = k_iq4_values.front();
  const float start = -max / lowest;
  Sums sums = sums_for(x, weights, 1 / start);
  float scale = sums.q2 > 0 ? sums.qx / sums.q2 : 0.0F;
  float best = scale * sums.qx;
  for (int step = -k_tries; step <= k_tries; ++step) {
    sums = sums_for(x, weights, (static_cast<float>(step) + lowest) / max);
    if (sums.q2 > 0 && sums.qx * sums.qx > best * sums.q2) {
      scale = sums.qx / sums.q2;
      best = scale * sums.qx;
    }
  }
  return scale;
}

void pack(std::span<const float> x, float inverse, std::uint8_t* qs) {
  for (std::size_t j = 0; j < k_sub / 2; ++j) {
    qs[j] = static_cast<std::uint8_t>(nearest_iq4_level(inverse * x[j]) |
                                      (nearest_iq4_level(inverse * x[j + k_sub / 2]) << 4));
  }
}

float sigma2_of(std::span<const float> x) {
  float sum = 0;
  for (const float v : x) {
    sum += v * v;
  }
  return sum * (2.0F / static_cast<float>(x.size()));
}

void quantize_nl(const float* x, const float* importance, BlockIQ4NL& y) {
  const std::span<const float> block(x, k_sub);
  const float scale = best_scale(block, weights_of(block, importance, sigma2_of(block)));
  y.d.set(scale);
  pack(block, scale != 0 ? 1 / scale : 0.0F, y.qs.data());
}

void quantize_nl_plain(const float* x, BlockIQ4NL& y) {
  quantize_nl(x, nullptr, y);
}

void quantize_xs(const float* x, const float* importance, BlockIQ4XS& y) {
  constexpr std::size_t k_subs = 8;
  const float sigma2 = sigma2_of({x, k_super});
  std::array<float, k_subs> scales;
  float magnitude = 0;
  float largest = 0;
  for (std::size_t s = 0; s < k_subs; ++s) {
    const std::span<const float> sub(x + k_sub * s, k_sub);
    const float* weights = importance != nullptr ? importance + k_sub * s : nullptr;
    scales[s] = best_scale(sub, weights_of(sub, weights, sigma2));
    if (std::fabs(scales[s]) > magnitude) {
      magnitude = std::fabs(scales[s]);
      largest = scales[s];
    }
  }
  const float d = -largest / 32;
  y.d.set(d);
  const float inverse = d != 0 ? 1 / d : 0.0F;
  unsigned high = 0;
  y.scales_l = {};
  for (std::size_t s = 0; s < k_subs; ++s) {
    const int level = std::clamp(nearest_int(inverse * scales[s]), -32, 31);
    const float scale = d * static_cast<float>(level);
    pack({x + k_sub * s, k_sub}, scale != 0 ? 1 / scale : 0.0F, y.qs.data() + k_sub / 2 * s);
    const auto stored = static_cast<unsigned>(level + 32);
    y.scales_l[s / 2] =
        static_cast<std::uint8_t>(y.scales_l[s / 2] | ((stored & 0xFU) << (4 * (s % 2))));
    high |= (stored >> 4) << (2 * s);
  }
  y.scales_h = {static_cast<std::uint8_t>(high & 0xFFU), static_cast<std::uint8_t>(high >> 8)};
}

void quantize_xs_plain(const float* x, BlockIQ4XS& y) {
  quantize_xs(x, nullptr, y);
}

void decode_sub(const std::uint8_t* qs, float scale, float* x) {
  for (std::size_t j = 0; j < k_sub / 2; ++j) {
    x[j] = scale * k_iq4_values[qs[j] & 0xF];
    x[j + k_sub / 2] = scale * k_iq4_values[qs[j] >> 4];
  }
}

void decode_nl(const BlockIQ4NL& y, float* x) {
  decode_sub(y.qs.data(), y.d.value(), x);
}

void decode_xs(const BlockIQ4XS& y, float* x) {
  const int high = y.scales_h[0] | (y.scales_h[1] << 8);
  for (std::size_t s = 0; s < k_super / k_sub; ++s) {
    const int low = (y.scales_l[s / 2] >> (4 * (s % 2))) & 0xF;
    const int level = (low | (((high >> (2 * s)) & 3) << 4)) - 32;
    decode_sub(y.qs.data() + k_sub / 2 * s, y.d.value() * static_cast<float>(level), x + k_sub * s);
  }
}

} // namespace

const RowCodec iq4_nl_codec{TensorType::iq4_nl, ImportanceUse::optional,
                            quantize_blocks<BlockIQ4NL, quantize_nl_plain, quantize_nl>,
                            dequantize_blocks<BlockIQ4NL, decode_nl>};
const RowCodec iq4_xs_codec{TensorType::iq4_xs, ImportanceUse::optional,
                            quantize_blocks<BlockIQ4XS, quantize_xs_plain, quantize_xs>,
                            dequantize_blocks<BlockIQ4XS, decode_xs>};

} // namespace modeld::quantize::reference
