// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/rounding.hpp"
#include "quantize/reference/scale_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: 32 elements, one scale. Without importance weights the scale
// maps the extreme onto the last level, and each element is rounded on its own. With them the scale
// comes from a search under the error sum of w (x - x')^2, w = importance * sqrt(mean of x^2 over
// the row + x^2). Q8_0 ignores importance.

namespace modeld::quantize::reference {
namespace {

constexpr std::size_t k_block = 32;
constexpr std::size_t k_half = k_block / 2;
using Levels = std::array<std::uint8_t, k_block>;

template <class Block>
void pack_nibbles(const Levels& levels, Block& y) {
  for (std::size_t j = 0; j < k_half; ++j) {
    y.qs[j] = static_cast<std::uint8_t>((levels[j] & 0xF) | ((levels[j + k_half] & 0xF) << 4));
  }
}

template <class Block>
void pack_fives(const Levels& levels, Block& y) {
  pack_nibbles(levels, y);
  y.qh = {};
  for (std::size_t j = 0; j < k_block; ++j) {
    y.qh[j / 8] = static_cast<std::uint8_t>(y.qh[j / 8] | (((levels[j] >> 4) & 1) << (j % 8)));
  }
}

template <class Block>
int nibble(const Block& y, std::size_t j) {
  return j < k_half ? y.qs[j] & 0xF : y.qs[j - k_half] >> 4;
}

template <class Block>
int five(const Block& y, std::size_t j) {
  return nibble(y, j) | (((y.qh[j / 8] >> (j % 8)) & 1) << 4);
}

float inverse_or_zero(float d) {
  return d != 0 ? 1.0F / d : 0.0F;
}

/// The element of the largest magnitude becomes level 0: d = extreme / -zero.
template <int Zero>
float signed_round(const float* x, Levels& levels) {
  float magnitude = 0;
  float extreme = 0;
  for (std::size_t j = 0; j < k_block; ++j) {
    if (magnitude < std::fabs(x[j])) {
      magnitude = std::fabs(x[j]);
      extreme = x[j];
    }
  }
  const float d = extreme / static_cast<float>(-Zero);
  const float inverse = inverse_or_zero(d);
  for (std::size_t j = 0; j < k_block; ++j) {
    const int level = truncate_i8(x[j] * inverse + (static_cast<float>(Zero) + 0.5F));
    levels[j] = static_cast<std::uint8_t>(std::min(2 * Zero - 1, level));
  }
  return d;
}

struct Range {
  float d;
  float min;
};

/// Min becomes level 0 and max level `Top`.
template <int Top>
Range affine_round(const float* x, Levels& levels) {
  float min = std::numeric_limits<float>::max();
  float max = -std::numeric_limits<float>::max();
  for (std::size_t j = 0; j < k_block; ++j) {
    if (x[j] < min) min = x[j];
    if (x[j] > max) max = x[j];
  }
  const float d = (max - min) / static_cast<float>(Top);
  const float inverse = inverse_or_zero(d);
  for (std::size_t j = 0; j < k_block; ++j) {
    const int level = truncate_i8((x[j] - min) * inverse + 0.5F);
    // The reference bounds four bits, and takes five as they come.
    levels[j] = static_cast<std::uint8_t>(Top == 15 ? std::min(Top, level) : level);
  }
  return {d, min};
}

void quantize_q4_0(const float* x, BlockQ4_0& y) {
  Levels levels;
  y.d.set(signed_round<8>(x, levels));
  pack_nibbles(levels, y);
}

void quantize_q5_0(const float* x, BlockQ5_0& y) {
  Levels levels;
  y.d.set(signed_round<16>(x, levels));
  pack_fives(levels, y);
}

void quantize_q4_1(const float* x, BlockQ4_1& y) {
  Levels levels;
  const Range range = affine_round<15>(x, levels);
  y.d.set(range.d);
  y.m.set(range.min);
  pack_nibbles(levels, y);
}

void quantize_q5_1(const float* x, BlockQ5_1& y) {
  Levels levels;
  const Range range = affine_round<31>(x, levels);
  y.d.set(range.d);
  y.m.set(range.min);
  pack_fives(levels, y);
}

void quantize_q8_0(const float* x, BlockQ8_0& y) {
  float magnitude = 0;
  for (std::size_t j = 0; j < k_block; ++j) {
    const float v = std::fabs(x[j]);
    magnitude = magnitude > v ? magnitude : v;
  }
  const float d = magnitude / 127.0F;
  const float inverse = inverse_or_zero(d);
  y.d.set(d);
  for (std::size_t j = 0; j < k_block; ++j) {
    y.qs[j] = truncate_i8(std::round(x[j] * inverse));
  }
}

/// With importance: sigma2 is the mean square of the whole row.
using Weights = std::array<float, k_block>;
using Weighted = void (*)(const float* x, const Weights& weights, std::byte* out);

Weights block_weights(const float* x, const float* importance, float sigma2) {
  Weights weights;
  for (std::size_t j = 0; j < k_block; ++j) {
    weights[j] = importance[j] * std::sqrt(sigma2 + x[j] * x[j]);
  }
  return weights;
}

float mean_square(std::span<const float> row) {
  float sum = 0;
  for (const float v : row) {
    sum += v * v;
  }
  return sum / static_cast<float>(row.size());
}

template <int Zero>
float search_signed(const float* x, const Weights& weights, Levels& levels) {
  std::array<std::int8_t, k_block> found;
  const float d = fit_signed({x, k_block}, Zero, weights.data(), found.data());
  std::copy(found.begin(), found.end(), levels.begin());
  return d;
}

template <int Top>
Range search_affine(const float* x, const Weights& weights, Levels& levels) {
  constexpr AffineGrid k_grid{-0.9F, 0.05F, 36};
  const AffineFit fit =
      fit_affine({x, k_block}, weights.data(), Top, k_grid, ErrorNorm::squared, levels.data());
  return {fit.scale, -fit.min};
}

void search_q4_0(const float* x, const Weights& weights, std::byte* out) {
  auto& y = *reinterpret_cast<BlockQ4_0*>(out);
  Levels levels;
  y.d.set(search_signed<8>(x, weights, levels));
  pack_nibbles(levels, y);
}

void search_q5_0(const float* x, const Weights& weights, std::byte* out) {
  auto& y = *reinterpret_cast<BlockQ5_0*>(out);
  Levels levels;
  y.d.set(search_signed<16>(x, weights, levels));
  pack_fives(levels, y);
}

void search_q4_1(const float* x, const Weights& weights, std::byte* out) {
  auto& y = *reinterpret_cast<BlockQ4_1*>(out);
  Levels levels;
  const Range range = search_affine<15>(x, weights, levels);
  y.d.set(range.d);
  y.m.set(range.min);
  pack_nibbles(levels, y);
}

void search_q5_1(const float* x, const Weights& weights, std::byte* out) {
  auto& y = *reinterpret_cast<BlockQ5_1*>(out);
  Levels levels;
  const Range range = search_affine<31>(x, weights, levels);
  y.d.set(range.d);
  y.m.set(range.min);
  pack_fives(levels, y);
}

template <class Block, void (*Plain)(const float*, Block&), Weighted Search>
void quantize_rows(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                   const float* importance, std::byte* out) {
  if (importance == nullptr) {
    quantize_blocks<Block, Plain>(in, rows, row_elements, nullptr, out);
    return;
  }
  for (std::uint64_t row = 0; row < rows; ++row, in += row_elements) {
    const float sigma2 = mean_square({in, row_elements});
    for (std::uint64_t at = 0; at < row_elements; at += k_block, out += sizeof(Block)) {
      Search(in + at, block_weights(in + at, importance + at, sigma2), out);
    }
  }
}

void decode_q4_0(const BlockQ4_0& y, float* x) {
  for (std::size_t j = 0; j < k_block; ++j) {
    x[j] = static_cast<float>(nibble(y, j) - 8) * y.d.value();
  }
}

void decode_q4_1(const BlockQ4_1& y, float* x) {
  for (std::size_t j = 0; j < k_block; ++j) {
    x[j] = static_cast<float>(nibble(y, j)) * y.d.value() + y.m.value();
  }
}

void decode_q5_0(const BlockQ5_0& y, float* x) {
  for (std::size_t j = 0; j < k_block; ++j) {
    x[j] = static_cast<float>(five(y, j) - 16) * y.d.value();
  }
}

void decode_q5_1(const BlockQ5_1& y, float* x) {
  for (std::size_t j = 0; j < k_block; ++j) {
    x[j] = static_cast<float>(five(y, j)) * y.d.value() + y.m.value();
  }
}

void decode_q8_0(const BlockQ8_0& y, float* x) {
  for (std::size_t j = 0; j < k_block; ++j) {
    x[j] = static_cast<float>(y.qs[j]) * y.d.value();
  }
}

} // namespace

const RowCodec q4_0_codec{TensorType::q4_0, ImportanceUse::optional,
                          quantize_rows<BlockQ4_0, quantize_q4_0, search_q4_0>,
                          dequantize_blocks<BlockQ4_0, decode_q4_0>};
const RowCodec q4_1_codec{TensorType::q4_1, ImportanceUse::optional,
                          quantize_rows<BlockQ4_1, quantize_q4_1, search_q4_1>,
                          dequantize_blocks<BlockQ4_1, decode_q4_1>};
const RowCodec q5_0_codec{TensorType::q5_0, ImportanceUse::optional,
                          quantize_rows<BlockQ5_0, quantize_q5_0, search_q5_0>,
                          dequantize_blocks<BlockQ5_0, decode_q5_0>};
const RowCodec q5_1_codec{TensorType::q5_1, ImportanceUse::optional,
                          quantize_rows<BlockQ5_1, quantize_q5_1, search_q5_1>,
                          dequantize_blocks<BlockQ5_1, decode_q5_1>};
const RowCodec q8_0_codec{TensorType::q8_0, ImportanceUse::ignored,
                          quantize_blocks<BlockQ8_0, quantize_q8_0>,
                          dequantize_blocks<BlockQ8_0, decode_q8_0>};

} // namespace modeld::quantize::reference
