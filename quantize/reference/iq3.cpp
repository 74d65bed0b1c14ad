// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/grid_search.hpp"
#include "quantize/reference/k_scales.hpp"
#include "quantize/reference/super_scale.hpp"

#include <cmath>
#include <cstring>

// IQ3_XXS (3.0625 bits) and IQ3_S (3.4375): 4 magnitudes on a grid of 256 or 512 points, one scale
// for 32 elements. Error: sum w (x - x')^2, w = importance * sqrt(2 * mean x^2 of the super-block +
// x^2), without importance x^2. Scales become odd multiples of the largest over 31; d is stored
// 1.25 % and 3.3 % larger, which their author found to fit better.

namespace modeld::quantize::reference {
namespace {

constexpr std::size_t k_sub = 32;
constexpr std::size_t k_subs = 8;
constexpr float k_xxs_values[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr GridRule k_xxs_rule{8, 15, 0.2F, GridRule::Again::off_grid, true};
constexpr GridRule k_s_rule{8, 9, 0.2F, GridRule::Again::all_if_any, false};
constexpr float k_small_eps = 1e-8F;

void weigh(std::span<const float> in, const float* importance, float sigma2, GridBlock& block) {
  if (importance != nullptr) {
    set_weights(in, importance, sigma2, block);
    return;
  }
  block.size = in.size();
  for (std::size_t i = 0; i < in.size(); ++i) {
    block.weights[i] = in[i] * in[i];
    block.roots[i] = std::sqrt(block.weights[i]);
  }
}

float sigma2_of(const float* x) {
  return 2 * sum_of_squares({x, k_super}) / 256.0F;
}

GridFit fit_32(const IqGrid& grid, const GridRule& rule, Signs signs, GridBlock& block) {
  const float max = largest(block);
  GridFit start;
  start.scale = max / 15.0F;
  return fit_on_grid(grid, rule, max, start, signs, block);
}

void quantize_xxs(const float* x, const float* importance, BlockIQ3XXS& y) {
  const IqGrid& grid = IqGrid::iq3_xxs();
  const float sigma2 = sigma2_of(x);
  std::array<float, k_subs> scales{};
  std::array<std::uint32_t, k_subs> words{};
  LargestScale max;
  y = {};
  for (std::size_t s = 0; s < k_subs; ++s) {
    const std::span<const float> sub(x + k_sub * s, k_sub);
    GridBlock block;
    weigh(sub, importance != nullptr ? importance + k_sub * s : nullptr, sigma2, block);
    take_signs(sub, Signs::even, block);
    if (largest(block) < k_small_eps) continue;
    const GridFit fit = fit_32(grid, k_xxs_rule, Signs::even, block);
    scales[s] = fit.scale;
    max.add(fit.scale);
    for (std::size_t k = 0; k < 8; ++k) {
      y.qs[8 * s + k] = static_cast<std::uint8_t>(grid.find(grid.code(&fit.levels[4 * k])));
    }
    for (std::size_t k = 0; k < 4; ++k) {
      words[s] |= std::uint32_t{block.signs[k]} << (7 * k);
    }
  }
  if (max.zero()) {
    y = {};
    return;
  }
  const float d = max.value() / 31;
  y.d.set(d * 1.0125F);
  const float inverse = 1 / d;
  for (std::size_t s = 0; s < k_subs; ++s) {
    words[s] |= static_cast<std::uint32_t>(odd_scale_level(inverse, scales[s], 15)) << 28;
  }
  std::memcpy(y.scales_and_signs.data(), words.data(), sizeof words);
}

void quantize_xxs_plain(const float* x, BlockIQ3XXS& y) {
  quantize_xxs(x, nullptr, y);
}

void decode_group(const std::uint8_t* levels, const float* values, unsigned signs, float scale,
                  float* x) {
  for (std::size_t i = 0; i < 4; ++i) {
    x[i] = scale * values[levels[i]] * (((signs >> i) & 1U) != 0 ? -1.0F : 1.0F);
  }
}

void decode_xxs(const BlockIQ3XXS& y, float* x) {
  const IqGrid& grid = IqGrid::iq3_xxs();
  std::array<std::uint32_t, k_subs> words;
  std::memcpy(words.data(), y.scales_and_signs.data(), sizeof words);
  for (std::size_t k = 0; k < 64; ++k) {
    const std::uint32_t word = words[k / 8];
    const float scale = y.d.value() * (0.5F + static_cast<float>(word >> 28)) * 0.5F;
    const unsigned seven = (word >> (7 * (k % 8 / 2))) & 127U;
    const unsigned odd = static_cast<unsigned>(__builtin_popcount(seven)) & 1U;
    const unsigned signs = (seven | (odd << 7)) >> (4 * (k % 2));
    decode_group(grid.levels(y.qs[k]), k_xxs_values, signs, scale, x + 4 * k);
  }
}

void quantize_s(const float* x, const float* importance, BlockIQ3S& y) {
  const IqGrid& grid = IqGrid::iq3_s();
  const float sigma2 = sigma2_of(x);
  std::array<float, k_subs> scales{};
  LargestScale max;
  y = {};
  // The reference does not step over an all-zero sub-block in qs and signs: what follows lands one
  // place too early, and decodes wrongly. quantized_source.cpp refuses such blocks.
  std::size_t place = 0;
  for (std::size_t s = 0; s < k_subs; ++s) {
    const std::span<const float> sub(x + k_sub * s, k_sub);
    GridBlock block;
    weigh(sub, importance != nullptr ? importance + k_sub * s : nullptr, sigma2, block);
    take_signs(sub, Signs::free, block);
    if (largest(block) == 0) continue;
    const GridFit fit = fit_32(grid, k_s_rule, Signs::free, block);
    scales[s] = fit.scale;
    max.add(fit.scale);
    for (std::size_t k = 0; k < 8; ++k) {
      const int index = grid.find(grid.code(&fit.levels[4 * k]));
      y.qs[8 * place + k] = static_cast<std::uint8_t>(index & 255);
      y.qh[s] = static_cast<std::uint8_t>(y.qh[s] | ((index >> 8) << k));
    }
    std::memcpy(&y.signs[4 * place], block.signs.data(), 4);
    ++place;
  }
  if (max.zero()) return;
  const float d = max.value() / 31;
  y.d.set(d * 1.033F);
  const float inverse = 1 / d;
  for (std::size_t s = 0; s < k_subs; s += 2) {
    y.scales[s / 2] = static_cast<std::uint8_t>(odd_scale_level(inverse, scales[s], 15) |
                                                (odd_scale_level(inverse, scales[s + 1], 15) << 4));
  }
}

void quantize_s_plain(const float* x, BlockIQ3S& y) {
  quantize_s(x, nullptr, y);
}

void decode_s(const BlockIQ3S& y, float* x) {
  constexpr float k_values[8] = {1, 3, 5, 7, 9, 11, 13, 15};
  const IqGrid& grid = IqGrid::iq3_s();
  for (std::size_t k = 0; k < 64; ++k) {
    const std::size_t s = k / 8;
    const int level = (y.scales[s / 2] >> (4 * (s % 2))) & 0xF;
    const float scale = y.d.value() * static_cast<float>(1 + 2 * level);
    const unsigned high = (static_cast<unsigned>(y.qh[s]) >> (k % 8)) & 1U;
    const unsigned signs = static_cast<unsigned>(y.signs[k / 2]) >> (4 * (k % 2));
    decode_group(grid.levels(y.qs[k] | (high << 8)), k_values, signs, scale, x + 4 * k);
  }
}

} // namespace

const RowCodec iq3_xxs_codec{TensorType::iq3_xxs, ImportanceUse::optional,
                             quantize_blocks<BlockIQ3XXS, quantize_xxs_plain, quantize_xxs>,
                             dequantize_blocks<BlockIQ3XXS, decode_xxs>};
const RowCodec iq3_s_codec{TensorType::iq3_s, ImportanceUse::optional,
                           quantize_blocks<BlockIQ3S, quantize_s_plain, quantize_s>,
                           dequantize_blocks<BlockIQ3S, decode_s>};

} // namespace modeld::quantize::reference
