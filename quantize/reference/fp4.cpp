// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/fp4_scales.hpp"

#include <cmath>
#include <span>

// MXFP4 (4.25 bits, OCP Microscaling: E2M1 elements, a power of two for 32) and NVFP4 (4.5 bits:
// E2M1 elements, an unsigned E4M3 scale for 16). The scale follows from the largest magnitude; each
// element takes the nearest value, the first of equals. Importance is ignored. The element table
// holds twice the value, and the scales half of theirs, as in ggml.

namespace modeld::quantize::reference {
namespace {

constexpr std::array<float, 16> k_values{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

std::uint8_t nearest_level(float x, float scale) {
  std::size_t best = 0;
  float least = std::fabs(k_values[0] * scale - x);
  for (std::size_t i = 1; i < k_values.size(); ++i) {
    const float error = std::fabs(k_values[i] * scale - x);
    if (error < least) {
      best = i;
      least = error;
    }
  }
  return static_cast<std::uint8_t>(best);
}

float magnitude(std::span<const float> x) {
  float max = 0;
  for (const float v : x) {
    if (max < std::fabs(v)) max = std::fabs(v);
  }
  return max;
}

/// Element j in the low nibble and j + size / 2 in the high one.
void pack(std::span<const float> x, float scale, std::uint8_t* qs) {
  const std::size_t half = x.size() / 2;
  for (std::size_t j = 0; j < half; ++j) {
    qs[j] = static_cast<std::uint8_t>(nearest_level(x[j], scale) |
                                      (nearest_level(x[j + half], scale) << 4));
  }
}

void unpack(const std::uint8_t* qs, float scale, std::span<float> x) {
  const std::size_t half = x.size() / 2;
  for (std::size_t j = 0; j < half; ++j) {
    x[j] = k_values[qs[j] & 0xF] * scale;
    x[j + half] = k_values[qs[j] >> 4] * scale;
  }
}

void quantize_mxfp4(const float* x, BlockMXFP4& y) {
  y.e = e8m0_for(magnitude({x, BlockMXFP4::k_elements}));
  pack({x, BlockMXFP4::k_elements}, half_of_e8m0(y.e), y.qs.data());
}

void decode_mxfp4(const BlockMXFP4& y, float* x) {
  unpack(y.qs.data(), half_of_e8m0(y.e), {x, BlockMXFP4::k_elements});
}

constexpr std::size_t k_nv_sub = 16;

void quantize_nvfp4(const float* x, BlockNVFP4& y) {
  for (std::size_t s = 0; s < y.d.size(); ++s) {
    const std::span<const float> sub(x + k_nv_sub * s, k_nv_sub);
    y.d[s] = to_ue4m3(magnitude(sub) / 6.0F); // 6 is the largest E2M1 value
    pack(sub, half_of_ue4m3(y.d[s]), y.qs.data() + k_nv_sub / 2 * s);
  }
}

void decode_nvfp4(const BlockNVFP4& y, float* x) {
  for (std::size_t s = 0; s < y.d.size(); ++s) {
    unpack(y.qs.data() + k_nv_sub / 2 * s, half_of_ue4m3(y.d[s]), {x + k_nv_sub * s, k_nv_sub});
  }
}

} // namespace

const RowCodec mxfp4_codec{TensorType::mxfp4, ImportanceUse::ignored,
                           quantize_blocks<BlockMXFP4, quantize_mxfp4>,
                           dequantize_blocks<BlockMXFP4, decode_mxfp4>};
const RowCodec nvfp4_codec{TensorType::nvfp4, ImportanceUse::ignored,
                           quantize_blocks<BlockNVFP4, quantize_nvfp4>,
                           dequantize_blocks<BlockNVFP4, decode_nvfp4>};

} // namespace modeld::quantize::reference
