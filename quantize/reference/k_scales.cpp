// SPDX-License-Identifier: Apache-2.0
#include "quantize/reference/k_scales.hpp"

#include <cmath>

namespace modeld::quantize::reference {
namespace {

std::uint8_t u8(int value) {
  return static_cast<std::uint8_t>(value & 0xFF);
}

} // namespace

void pack_scale_min(std::size_t j, ScaleMin value, Bytes<12>& scales) {
  if (j < 4) {
    scales[j] = value.scale;
    scales[j + 4] = value.min;
    return;
  }
  scales[j + 4] = u8((value.scale & 0xF) | ((value.min & 0xF) << 4));
  scales[j - 4] = u8(scales[j - 4] | ((value.scale >> 4) << 6));
  scales[j] = u8(scales[j] | ((value.min >> 4) << 6));
}

ScaleMin unpack_scale_min(std::size_t j, const Bytes<12>& scales) {
  if (j < 4) return {u8(scales[j] & 63), u8(scales[j + 4] & 63)};
  return {u8((scales[j + 4] & 0xF) | ((scales[j - 4] >> 6) << 4)),
          u8((scales[j + 4] >> 4) | ((scales[j] >> 6) << 4))};
}

void pack_q3_scale(std::size_t j, int value, Bytes<12>& scales) {
  const int low = value & 0xF;
  scales[j % 8] = u8(scales[j % 8] | (j < 8 ? low : low << 4));
  std::uint8_t& high = scales[8 + j % 4];
  high = u8(high | ((value >> 4) << (2 * (j / 4))));
}

int unpack_q3_scale(std::size_t j, const Bytes<12>& scales) {
  const int low = j < 8 ? scales[j] & 0xF : scales[j - 8] >> 4;
  return low | (((scales[8 + j % 4] >> (2 * (j / 4))) & 3) << 4);
}

void pack_pairs(const SuperLevels& levels, Bytes<64>& qs) {
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t l = 0; l < 32; ++l) {
      const std::uint8_t* at = levels.data() + 128 * half + l;
      qs[32 * half + l] = u8(at[0] | (at[32] << 2) | (at[64] << 4) | (at[96] << 6));
    }
  }
}

int unpack_pair(std::size_t i, const Bytes<64>& qs) {
  const std::size_t in_half = i % 128;
  return (qs[32 * (i / 128) + in_half % 32] >> (2 * (in_half / 32))) & 3;
}

float sum_of_squares(std::span<const float> x) {
  float sum = 0;
  for (const float v : x) {
    sum += v * v;
  }
  return sum;
}

float importance_weights(std::span<const float> x, const float* importance, float sigma2,
                         float* weights) {
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    weights[i] = importance[i] * std::sqrt(sigma2 + x[i] * x[i]);
    sum += weights[i];
  }
  return sum;
}

void magnitude_weights(std::span<const float> x, float* weights) {
  const float average = std::sqrt(sum_of_squares(x) / static_cast<float>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    weights[i] = average + std::fabs(x[i]);
  }
}

} // namespace modeld::quantize::reference
