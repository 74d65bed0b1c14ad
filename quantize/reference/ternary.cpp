// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <span>

// Types of one or two bits without a search. TQ1_0 (1.6875 bits) and TQ2_0 (2.0625): d = largest
// magnitude, levels -1, 0, 1, for models that were trained so. Q2_0 (2.25): likewise, and level 2
// is there but never reached. Q1_0 (1.125): d = mean magnitude, signs. All ignore importance.

namespace modeld::quantize::reference {
namespace {

float magnitude(std::span<const float> x) {
  float max = 0;
  for (const float v : x) {
    const float a = std::fabs(v);
    max = max > a ? max : a;
  }
  return max;
}

/// The low 32 bits of the rounded value: where the scale's inverse is infinite, x / d may be.
int rounded(float x) {
  const float whole = std::round(x);
  if (!(whole >= -0x1p63F && whole < 0x1p63F)) return 0;
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
  return static_cast<int>(static_cast<std::uint32_t>(bits & 0xFFFFFFFFU));
}

/// Base-3 digits, the first most significant, as a fraction of 256: byte * 3 >> 8 is the first.
template <std::size_t Count>
std::uint8_t pack_trits(const float* x, std::size_t stride, float inverse) {
  std::uint8_t q = 0;
  for (std::size_t n = 0; n < 5; ++n) {
    q = static_cast<std::uint8_t>(q * 3U);
    if (n < Count) {
      const auto digit = static_cast<unsigned>(rounded(x[n * stride] * inverse)) + 1U;
      q = static_cast<std::uint8_t>((q + digit) & 0xFFU);
    }
  }
  return static_cast<std::uint8_t>((q * 256U + 242U) / 243U); // rounded up
}

float inverse_or_zero(float d) {
  return d != 0 ? 1.0F / d : 0.0F;
}

void quantize_tq1_0(const float* x, BlockTQ1_0& y) {
  const float d = magnitude({x, k_super});
  const float inverse = inverse_or_zero(d);
  y.d.set(d);
  for (std::size_t m = 0; m < 32; ++m) {
    y.qs[m] = pack_trits<5>(x + m, 32, inverse);
  }
  for (std::size_t m = 0; m < 16; ++m) {
    y.qs[32 + m] = pack_trits<5>(x + 160 + m, 16, inverse);
  }
  for (std::size_t m = 0; m < 4; ++m) {
    y.qh[m] = pack_trits<4>(x + 240 + m, 4, inverse);
  }
}

float unpack_trit(std::uint8_t packed, std::size_t n, float d) {
  constexpr std::array<unsigned, 5> k_powers{1, 3, 9, 27, 81};
  const auto q = static_cast<std::uint8_t>((packed * k_powers[n]) & 0xFFU);
  return static_cast<float>(((q * 3) >> 8) - 1) * d;
}

void decode_tq1_0(const BlockTQ1_0& y, float* x) {
  const float d = y.d.value();
  for (std::size_t i = 0; i < 160; ++i) {
    x[i] = unpack_trit(y.qs[i % 32], i / 32, d);
  }
  for (std::size_t i = 0; i < 80; ++i) {
    x[160 + i] = unpack_trit(y.qs[32 + i % 16], i / 16, d);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    x[240 + i] = unpack_trit(y.qh[i % 4], i / 4, d);
  }
}

void quantize_tq2_0(const float* x, BlockTQ2_0& y) {
  const float d = magnitude({x, k_super});
  const float inverse = inverse_or_zero(d);
  y.d.set(d);
  y.qs = {};
  for (std::size_t i = 0; i < k_super; ++i) {
    const auto level = static_cast<unsigned>(rounded(x[i] * inverse)) + 1U;
    std::uint8_t& byte = y.qs[32 * (i / 128) + i % 32];
    byte = static_cast<std::uint8_t>(byte | ((level & 3U) << (2 * (i % 128 / 32))));
  }
}

void decode_tq2_0(const BlockTQ2_0& y, float* x) {
  for (std::size_t i = 0; i < k_super; ++i) {
    const int level = (y.qs[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    x[i] = static_cast<float>(level - 1) * y.d.value();
  }
}

void quantize_q2_0(const float* x, BlockQ2_0& y) {
  const float d = magnitude({x, BlockQ2_0::k_elements});
  const float inverse = d > 0 ? 1.0F / d : 0.0F;
  y.d.set(d);
  y.qs = {};
  for (std::size_t i = 0; i < BlockQ2_0::k_elements; ++i) {
    const auto shifted = static_cast<std::int64_t>(round_away(x[i] * inverse)) + 1;
    const auto level = std::clamp<std::int64_t>(shifted, 0, 3);
    y.qs[i / 4] = static_cast<std::uint8_t>(y.qs[i / 4] | (level << (2 * (i % 4))));
  }
}

void decode_q2_0(const BlockQ2_0& y, float* x) {
  for (std::size_t i = 0; i < BlockQ2_0::k_elements; ++i) {
    x[i] = static_cast<float>(((y.qs[i / 4] >> (2 * (i % 4))) & 3) - 1) * y.d.value();
  }
}

void quantize_q1_0(const float* x, BlockQ1_0& y) {
  float sum = 0;
  for (std::size_t i = 0; i < BlockQ1_0::k_elements; ++i) {
    sum += std::fabs(x[i]);
  }
  y.d.set(sum / static_cast<float>(BlockQ1_0::k_elements));
  y.qs = {};
  for (std::size_t i = 0; i < BlockQ1_0::k_elements; ++i) {
    if (x[i] >= 0.0F) y.qs[i / 8] = static_cast<std::uint8_t>(y.qs[i / 8] | (1U << (i % 8)));
  }
}

void decode_q1_0(const BlockQ1_0& y, float* x) {
  const float d = y.d.value();
  for (std::size_t i = 0; i < BlockQ1_0::k_elements; ++i) {
    x[i] = ((y.qs[i / 8] >> (i % 8)) & 1) != 0 ? d : -d;
  }
}

} // namespace

const RowCodec q1_0_codec{TensorType::q1_0, ImportanceUse::ignored,
                          quantize_blocks<BlockQ1_0, quantize_q1_0>,
                          dequantize_blocks<BlockQ1_0, decode_q1_0>};
const RowCodec q2_0_codec{TensorType::q2_0, ImportanceUse::ignored,
                          quantize_blocks<BlockQ2_0, quantize_q2_0>,
                          dequantize_blocks<BlockQ2_0, decode_q2_0>};
const RowCodec tq1_0_codec{TensorType::tq1_0, ImportanceUse::ignored,
                           quantize_blocks<BlockTQ1_0, quantize_tq1_0>,
                           dequantize_blocks<BlockTQ1_0, decode_tq1_0>};
const RowCodec tq2_0_codec{TensorType::tq2_0, ImportanceUse::ignored,
                           quantize_blocks<BlockTQ2_0, quantize_tq2_0>,
                           dequantize_blocks<BlockTQ2_0, decode_tq2_0>};

} // namespace modeld::quantize::reference
