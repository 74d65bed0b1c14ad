// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/grid_search.hpp"
#include "quantize/reference/k_scales.hpp"
#include "quantize/reference/scale_search.hpp"
#include "quantize/reference/super_scale.hpp"

#include <cmath>
#include <cstring>
#include <optional>

// IQ2_XXS (2.0625 bits), IQ2_XS (2.3125) and IQ2_S (2.5625): 8 magnitudes on a grid of 256, 512 or
// 1024 points. Error: sum w (x - x')^2, w = importance * sqrt(mean x^2 of the super-block + x^2),
// the mean doubled in IQ2_S. The first two need importance; IQ2_S without it uses w = mean / 2 +
// x^2. Scales become odd multiples 2 l + 1, l of 4 bits, of the largest over 31; IQ2_S stores d
// 1.25 % smaller, which its author found to fit better.

namespace modeld::quantize::reference {
namespace {

constexpr float k_values[3] = {8, 25, 43};
constexpr float k_small_eps = 1e-8F;

/// Sign bits of a group of 8 from the 7 that are stored.
std::uint8_t even_signs(unsigned seven) {
  const unsigned odd = static_cast<unsigned>(__builtin_popcount(seven)) & 1U;
  return static_cast<std::uint8_t>(seven | (odd << 7));
}

void decode_group(const IqGrid& grid, std::size_t index, std::uint8_t signs, float scale,
                  float* x) {
  const std::uint8_t* levels = grid.levels(index);
  for (std::size_t i = 0; i < 8; ++i) {
    const float sign = ((signs >> i) & 1) != 0 ? -1.0F : 1.0F;
    x[i] = scale * k_values[levels[i]] * sign;
  }
}

float sub_scale(float d, int level) {
  return d * (0.5F + static_cast<float>(level)) * 0.25F;
}

/// One sub-block of IQ2_XXS; its search starts from a plain fit to levels 0 .. 4. Nothing where the
/// sub-block counts as zero: index and signs stay 0.
std::optional<GridFit> fit_xxs(GridBlock& block) {
  constexpr GridRule k_rule{3, 6, 0.1F, GridRule::Again::all, true};
  if (largest(block) < k_zero_eps) return std::nullopt;
  GridFit start;
  start.scale =
      fit_unsigned({block.x.data(), block.size}, 4, block.weights.data(), start.levels.data());
  const float reach = start.scale * 3.0F;
  if (reach <= 0) return std::nullopt;
  if (!(reach > 0)) return GridFit{reach, {}};
  return fit_on_grid(IqGrid::iq2_xxs(), k_rule, reach, start, Signs::even, block);
}

void quantize_xxs(const float* x, const float* importance, BlockIQ2XXS& y) {
  constexpr std::size_t k_sub = 32;
  const IqGrid& grid = IqGrid::iq2_xxs();
  const float sigma2 = sum_of_squares({x, k_super}) / 256.0F;
  std::array<std::uint32_t, 16> words{};
  std::array<float, 8> scales{};
  LargestScale max;
  for (std::size_t s = 0; s < 8; ++s) {
    GridBlock block;
    set_weights({x + k_sub * s, k_sub}, importance + k_sub * s, sigma2, block);
    take_signs({x + k_sub * s, k_sub}, Signs::even, block);
    const auto fit = fit_xxs(block);
    if (!fit) continue;
    scales[s] = fit->scale;
    max.add(fit->scale);
    for (std::size_t k = 0; k < 4; ++k) {
      const auto index = static_cast<std::uint32_t>(grid.find(grid.code(&fit->levels[8 * k])));
      words[2 * s] |= index << (8 * k);
      words[2 * s + 1] |= std::uint32_t{block.signs[k]} << (7 * k);
    }
  }
  y = {};
  if (max.zero()) return;
  const float d = max.value() / 31;
  y.d.set(d);
  const float inverse = 1 / d;
  for (std::size_t s = 0; s < 8; ++s) {
    words[2 * s + 1] |= static_cast<std::uint32_t>(odd_scale_level(inverse, scales[s], 15)) << 28;
  }
  std::memcpy(y.qs.data(), words.data(), sizeof words);
}

void decode_xxs(const BlockIQ2XXS& y, float* x) {
  std::array<std::uint32_t, 16> words;
  std::memcpy(words.data(), y.qs.data(), sizeof words);
  for (std::size_t s = 0; s < 8; ++s) {
    const float scale = sub_scale(y.d.value(), static_cast<int>(words[2 * s + 1] >> 28));
    for (std::size_t k = 0; k < 4; ++k) {
      decode_group(IqGrid::iq2_xxs(), (words[2 * s] >> (8 * k)) & 255U,
                   even_signs((words[2 * s + 1] >> (7 * k)) & 127U), scale, x + 32 * s + 8 * k);
    }
  }
}

constexpr GridRule k_16_rule{3, 9, 0.1F, GridRule::Again::off_grid, true};

/// One sub-block of 16 of IQ2_XS and IQ2_S; nothing where it counts as zero.
std::optional<GridFit> fit_16(const IqGrid& grid, Signs signs, float eps, GridBlock& block) {
  const float max = largest(block);
  if (max < eps) return std::nullopt;
  GridFit start;
  start.scale = max / 5.0F;
  return fit_on_grid(grid, k_16_rule, max, start, signs, block);
}

void set_nibble(Bytes<8>& scales, std::size_t i, int level) {
  scales[i / 2] = static_cast<std::uint8_t>(scales[i / 2] | (level << (4 * (i % 2))));
}

int nibble(const Bytes<8>& scales, std::size_t i) {
  return (scales[i / 2] >> (4 * (i % 2))) & 0xF;
}

void quantize_xs(const float* x, const float* importance, BlockIQ2XS& y) {
  constexpr std::size_t k_sub = 16;
  const IqGrid& grid = IqGrid::iq2_xs();
  const float sigma2 = sum_of_squares({x, k_super}) / 256.0F;
  std::array<std::uint16_t, 32> words{};
  std::array<float, 16> scales{};
  LargestScale max;
  for (std::size_t s = 0; s < 16; ++s) {
    GridBlock block;
    set_weights({x + k_sub * s, k_sub}, importance + k_sub * s, sigma2, block);
    take_signs({x + k_sub * s, k_sub}, Signs::even, block);
    const auto fit = fit_16(grid, Signs::even, k_zero_eps, block);
    if (!fit) continue;
    scales[s] = fit->scale;
    max.add(fit->scale);
    for (std::size_t k = 0; k < 2; ++k) {
      const int index = grid.find(grid.code(&fit->levels[8 * k]));
      words[2 * s + k] = static_cast<std::uint16_t>(index | (block.signs[k] << 9));
    }
  }
  y = {};
  if (max.zero()) return;
  const float d = max.value() / 31;
  y.d.set(d);
  const float inverse = 1 / d;
  for (std::size_t s = 0; s < 16; ++s) {
    set_nibble(y.scales, s, odd_scale_level(inverse, scales[s], 15));
  }
  std::memcpy(y.qs.data(), words.data(), sizeof words);
}

void decode_xs(const BlockIQ2XS& y, float* x) {
  std::array<std::uint16_t, 32> words;
  std::memcpy(words.data(), y.qs.data(), sizeof words);
  for (std::size_t k = 0; k < 32; ++k) {
    decode_group(IqGrid::iq2_xs(), words[k] & 511U, even_signs(words[k] >> 9U),
                 sub_scale(y.d.value(), nibble(y.scales, k / 2)), x + 8 * k);
  }
}

/// Where there is no importance.
void plain_weights(std::span<const float> in, float sigma2, GridBlock& block) {
  block.size = in.size();
  for (std::size_t i = 0; i < in.size(); ++i) {
    block.weights[i] = 0.25F * sigma2 + in[i] * in[i];
    block.roots[i] = std::sqrt(block.weights[i]);
  }
}

void quantize_s(const float* x, const float* importance, BlockIQ2S& y) {
  constexpr std::size_t k_sub = 16;
  const IqGrid& grid = IqGrid::iq2_s();
  const float sigma2 = 2 * sum_of_squares({x, k_super}) / 256.0F;
  std::array<float, 16> scales{};
  LargestScale max;
  y = {};
  for (std::size_t s = 0; s < 16; ++s) {
    const std::span<const float> sub(x + k_sub * s, k_sub);
    GridBlock block;
    if (importance != nullptr) {
      set_weights(sub, importance + k_sub * s, sigma2, block);
    } else {
      plain_weights(sub, sigma2, block);
    }
    take_signs(sub, Signs::free, block);
    const auto fit = fit_16(grid, Signs::free, k_small_eps, block);
    if (!fit) continue;
    scales[s] = fit->scale;
    max.add(fit->scale);
    for (std::size_t k = 2 * s; k < 2 * s + 2; ++k) {
      const int index = grid.find(grid.code(&fit->levels[8 * (k % 2)]));
      y.qs[k] = static_cast<std::uint8_t>(index & 255);
      y.qh[k / 4] = static_cast<std::uint8_t>(y.qh[k / 4] | ((index >> 8) << (2 * (k % 4))));
      y.signs[k] = block.signs[k % 2];
    }
  }
  if (max.zero()) return;
  const float d = max.value() / 31;
  y.d.set(d * 0.9875F);
  const float inverse = 1 / d;
  for (std::size_t s = 0; s < 16; ++s) {
    set_nibble(y.scales, s, odd_scale_level(inverse, scales[s], 15));
  }
}

void quantize_s_plain(const float* x, BlockIQ2S& y) {
  quantize_s(x, nullptr, y);
}

void decode_s(const BlockIQ2S& y, float* x) {
  for (std::size_t k = 0; k < 32; ++k) {
    const unsigned high = (static_cast<unsigned>(y.qh[k / 4]) >> (2 * (k % 4))) & 3U;
    decode_group(IqGrid::iq2_s(), y.qs[k] | (high << 8), y.signs[k],
                 sub_scale(y.d.value(), nibble(y.scales, k / 2)), x + 8 * k);
  }
}

/// For types that have no definition without importance.
template <class Block, void (*Weighted)(const float*, const float*, Block&)>
void quantize_weighted(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                       const float* importance, std::byte* out) {
  quantize_blocks<Block, nullptr, Weighted>(in, rows, row_elements, importance, out);
}

} // namespace

const RowCodec iq2_xxs_codec{TensorType::iq2_xxs, ImportanceUse::required,
                             quantize_weighted<BlockIQ2XXS, quantize_xxs>,
                             dequantize_blocks<BlockIQ2XXS, decode_xxs>};
const RowCodec iq2_xs_codec{TensorType::iq2_xs, ImportanceUse::required,
                            quantize_weighted<BlockIQ2XS, quantize_xs>,
                            dequantize_blocks<BlockIQ2XS, decode_xs>};
const RowCodec iq2_s_codec{TensorType::iq2_s, ImportanceUse::optional,
                           quantize_blocks<BlockIQ2S, quantize_s_plain, quantize_s>,
                           dequantize_blocks<BlockIQ2S, decode_s>};

} // namespace modeld::quantize::reference
