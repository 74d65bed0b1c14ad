// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/rounding.hpp"
#include "quantize/reference/scale_search.hpp"

#include <algorithm>
#include <cmath>

// Q6_K: 6.5625 bits. 16 sub-blocks, levels -32..31, signed scales of 8 bits on the one of largest
// magnitude. Error weighted by x^2, or by the importance as it is; 19 candidates. Then the levels
// are rounded again to what the stored scales say.

namespace modeld::quantize::reference {
namespace {

constexpr std::size_t k_subs = 16;
constexpr std::size_t k_sub = 16;
using SignedLevels = std::array<std::int8_t, k_super>;

void round_to_stored(const float* x, SignedLevels& levels, const BlockQ6K& y) {
  for (std::size_t j = 0; j < k_subs; ++j) {
    const float d = y.d.value() * static_cast<float>(y.scales[j]);
    if (d == 0) continue;
    for (std::size_t i = k_sub * j; i < k_sub * (j + 1); ++i) {
      levels[i] = static_cast<std::int8_t>(std::clamp(nearest_int(x[i] / d), -32, 31) + 32);
    }
  }
}

void pack(const SignedLevels& levels, BlockQ6K& y) {
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t l = 0; l < 32; ++l) {
      const std::int8_t* at = levels.data() + 128 * half + l;
      std::uint8_t* low = y.ql.data() + 64 * half + l;
      low[0] = static_cast<std::uint8_t>((at[0] & 0xF) | ((at[64] & 0xF) << 4));
      low[32] = static_cast<std::uint8_t>((at[32] & 0xF) | ((at[96] & 0xF) << 4));
      y.qh[32 * half + l] = static_cast<std::uint8_t>((at[0] >> 4) | ((at[32] >> 4) << 2) |
                                                      ((at[64] >> 4) << 4) | ((at[96] >> 4) << 6));
    }
  }
}

void quantize_block(const float* x, const float* importance, BlockQ6K& y) {
  SignedLevels levels;
  std::array<float, k_subs> scales;
  float magnitude = 0;
  float largest = 0;
  for (std::size_t j = 0; j < k_subs; ++j) {
    const float* weights = importance != nullptr ? importance + k_sub * j : nullptr;
    scales[j] = fit_signed({x + k_sub * j, k_sub}, 32, weights, levels.data() + k_sub * j);
    if (std::fabs(scales[j]) > magnitude) {
      magnitude = std::fabs(scales[j]);
      largest = scales[j];
    }
  }
  if (magnitude < k_zero_eps) {
    y = BlockQ6K{};
    return;
  }
  const float inverse = -128.0F / largest;
  y.d.set(1 / inverse);
  for (std::size_t j = 0; j < k_subs; ++j) {
    const int level = std::min(127, nearest_int(inverse * scales[j]));
    y.scales[j] = static_cast<std::int8_t>(level & 0xFF);
  }
  round_to_stored(x, levels, y);
  pack(levels, y);
}

void quantize_plain(const float* x, BlockQ6K& y) {
  quantize_block(x, nullptr, y);
}

void decode(const BlockQ6K& y, float* x) {
  for (std::size_t i = 0; i < k_super; ++i) {
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / 32;
    const std::size_t l = i % 32;
    const std::uint8_t pair = y.ql[64 * half + 32 * (quarter % 2) + l];
    const int low = quarter < 2 ? pair & 0xF : pair >> 4;
    const int high = (y.qh[32 * half + l] >> (2 * quarter)) & 3;
    x[i] = y.d.value() * static_cast<float>(y.scales[i / k_sub]) *
           static_cast<float>((low | (high << 4)) - 32);
  }
}

} // namespace

const RowCodec q6_k_codec{TensorType::q6_k, ImportanceUse::optional,
                          quantize_blocks<BlockQ6K, quantize_plain, quantize_block>,
                          dequantize_blocks<BlockQ6K, decode>};

} // namespace modeld::quantize::reference
