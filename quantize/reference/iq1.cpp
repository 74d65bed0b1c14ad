// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/block_layout.hpp"
#include "quantize/reference/block_rows.hpp"
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/iq_grid.hpp"
#include "quantize/reference/k_scales.hpp"
#include "quantize/reference/rounding.hpp"
#include "quantize/reference/super_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

// IQ1_S (1.5625 bits) and IQ1_M (1.75): levels -1, 0, 1, all shifted by +1/8 or -1/8, on a grid of
// 2048 points of 8. In a sub-block (32 elements with one shift; 16 with a shift for each 8) the
// elements are sorted, and every way to cut the sorted row into three runs is tried with each
// shift: the least squares scale that explains most wins. Runs of levels that are off the grid take
// the neighbour of least error. Error: sum w (x - x')^2, w = importance * sqrt(2 * mean x^2 of the
// super-block + x^2); IQ1_M without importance x^2. Scales become odd multiples, 3 bits; d is
// stored 12.5 % and 11.25 % larger, which their author found to fit better.

namespace modeld::quantize::reference {
namespace {

constexpr float k_shift = 0.125F;
using Values = std::array<float, 3>;
constexpr Values k_plus{-1 + k_shift, k_shift, 1 + k_shift};
constexpr Values k_minus{-1 - k_shift, -k_shift, 1 - k_shift};

/// The elements of a sub-block, their weights, and their order by value; equal ones keep theirs.
template <std::size_t Size>
struct Sub {
  std::span<const float> x;
  std::array<float, Size> weights;
  std::array<std::size_t, Size> order;

  Sub(const float* in, const float* importance, float sigma2) : x(in, Size) {
    for (std::size_t i = 0; i < Size; ++i) {
      weights[i] =
          importance != nullptr ? importance[i] * std::sqrt(sigma2 + x[i] * x[i]) : x[i] * x[i];
    }
  }
  float magnitude() const {
    float max = std::fabs(x[0]);
    for (const float v : x) {
      const float a = std::fabs(v);
      max = max > a ? max : a;
    }
    return max;
  }
  void sort() {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  }
};

/// The best cut of the sorted row: levels 0 before `first`, 1 before `second`, then 2.
struct Cut {
  float scale = 0;
  float score = -std::numeric_limits<float>::max();
  std::size_t first = 0;
  std::size_t second = 0;
  int variant = -1; ///< which shifts; none: no cut explains anything

  void offer(float qx, float q2, std::size_t i1, std::size_t i2, int which) {
    if (!(q2 > 0 && qx * qx > score * q2)) return;
    scale = qx / q2;
    score = scale * qx;
    first = i1;
    second = i2;
    variant = which;
  }
};

template <std::size_t Size>
std::array<std::uint8_t, Size> levels_of(const Cut& cut,
                                         const std::array<std::size_t, Size>& order) {
  std::array<std::uint8_t, Size> levels;
  for (std::size_t j = 0; j < Size; ++j) {
    levels[order[j]] = j < cut.first ? 0 : j < cut.second ? 1 : 2;
  }
  return levels;
}

template <std::size_t Size>
void mirror(std::array<std::uint8_t, Size>& levels) {
  for (std::uint8_t& level : levels) {
    level = static_cast<std::uint8_t>(2 - level);
  }
}

/// The neighbour of least weighted error for `scale`, the first of equals.
std::size_t best_neighbour(const IqGrid& grid, std::uint32_t code, const float* x,
                           const float* weights, float scale, const Values& values) {
  const auto neighbours = grid.neighbours(code);
  std::size_t best = neighbours.front();
  float least = std::numeric_limits<float>::max();
  for (const std::uint16_t point : neighbours) {
    const std::uint8_t* levels = grid.levels(point);
    float error = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const float difference = scale * values[levels[i]] - x[i];
      error += weights[i] * difference * difference;
    }
    if (error < least) {
      least = error;
      best = point;
    }
  }
  return best;
}

/// Puts each group of 8 on the grid; where one was off it, the scale is fitted again.
template <std::size_t Size, class ValuesOf>
std::array<std::size_t, Size / 8> place(const Sub<Size>& sub,
                                        const std::array<std::uint8_t, Size>& levels,
                                        ValuesOf values_of, float& scale) {
  const IqGrid& grid = IqGrid::iq1();
  std::array<std::size_t, Size / 8> index;
  bool all_on_grid = true;
  for (std::size_t k = 0; k < index.size(); ++k) {
    const std::uint32_t code = grid.code(&levels[8 * k]);
    const int found = grid.find(code);
    if (found >= 0) {
      index[k] = static_cast<std::size_t>(found);
      continue;
    }
    all_on_grid = false;
    index[k] = best_neighbour(grid, code, &sub.x[8 * k], &sub.weights[8 * k], scale, values_of(k));
  }
  if (all_on_grid) return index;
  float qx = 0;
  float q2 = 0;
  for (std::size_t i = 0; i < Size; ++i) {
    const float q = values_of(i / 8)[grid.levels(index[i / 8])[i % 8]];
    qx += sub.weights[i] * q * sub.x[i];
    q2 += sub.weights[i] * q * q;
  }
  if (qx > 0 && q2 > 0) scale = qx / q2;
  return index;
}

float sigma2_of(const float* x) {
  return 2 * sum_of_squares({x, k_super}) / 256.0F;
}

int scale_level(float inverse, float scale) {
  return std::clamp(nearest_int(0.5F * (inverse * scale - 1)), 0, 7);
}

constexpr std::size_t k_s_sub = 32;
constexpr std::size_t k_s_subs = 8;

/// Every cut with either shift, by sums over the sorted row. Variant 0: +1/8; 1: -1/8.
Cut best_cut(const Sub<k_s_sub>& sub) {
  std::array<float, k_s_sub + 1> sum_x{};
  std::array<float, k_s_sub + 1> sum_w{};
  for (std::size_t j = 0; j < k_s_sub; ++j) {
    const std::size_t i = sub.order[j];
    sum_x[j + 1] = sum_x[j] + sub.weights[i] * sub.x[i];
    sum_w[j + 1] = sum_w[j] + sub.weights[i];
  }
  Cut cut;
  const auto offer = [&](std::size_t i1, std::size_t i2, const Values& v, int variant) {
    const float qx = (sum_x[i1] - sum_x[0]) * v[0] + (sum_x[i2] - sum_x[i1]) * v[1] +
                     (sum_x[k_s_sub] - sum_x[i2]) * v[2];
    const float q2 = (sum_w[i1] - sum_w[0]) * v[0] * v[0] + (sum_w[i2] - sum_w[i1]) * v[1] * v[1] +
                     (sum_w[k_s_sub] - sum_w[i2]) * v[2] * v[2];
    cut.offer(qx, q2, i1, i2, variant);
  };
  for (std::size_t i1 = 0; i1 <= k_s_sub; ++i1) {
    for (std::size_t i2 = i1; i2 <= k_s_sub; ++i2) {
      offer(i1, i2, k_plus, 0);
      offer(i1, i2, k_minus, 1);
    }
  }
  return cut;
}

void quantize_s(const float* x, const float* importance, BlockIQ1S& y) {
  constexpr float k_eps = 1e-12F;
  const float sigma2 = sigma2_of(x);
  std::array<float, k_s_subs> scales{};
  std::array<bool, k_s_subs> minus{};
  std::array<std::uint16_t, k_s_subs> words{};
  LargestScale max;
  y = {};
  for (std::size_t s = 0; s < k_s_subs; ++s) {
    Sub<k_s_sub> sub(x + k_s_sub * s, importance + k_s_sub * s, sigma2);
    if (sub.magnitude() < k_eps) continue;
    sub.sort();
    Cut cut = best_cut(sub);
    if (cut.variant < 0) continue;
    auto levels = levels_of(cut, sub.order);
    if (cut.scale < 0) {
      mirror(levels);
      cut.scale = -cut.scale;
      cut.variant = 1 - cut.variant;
    }
    minus[s] = cut.variant == 1;
    const Values& values = minus[s] ? k_minus : k_plus;
    const auto values_of = [&values](std::size_t) -> const Values& { return values; };
    const auto index = place(sub, levels, values_of, cut.scale);
    scales[s] = cut.scale;
    max.add(cut.scale);
    for (std::size_t k = 0; k < index.size(); ++k) {
      y.qs[4 * s + k] = static_cast<std::uint8_t>(index[k] & 255U);
      words[s] = static_cast<std::uint16_t>(words[s] | ((index[k] >> 8) << (3 * k)));
    }
  }
  if (!max.zero()) {
    const float d = max.value() / 15;
    y.d.set(d * 1.125F);
    const float inverse = 1 / d;
    for (std::size_t s = 0; s < k_s_subs; ++s) {
      const int level = scale_level(inverse, scales[s]) | (minus[s] ? 8 : 0);
      words[s] = static_cast<std::uint16_t>(words[s] | (level << 12));
    }
  }
  std::memcpy(y.qh.data(), words.data(), sizeof words);
}

void decode_points(std::size_t index, float scale, float shift, float* x) {
  const std::uint8_t* levels = IqGrid::iq1().levels(index);
  for (std::size_t i = 0; i < 8; ++i) {
    x[i] = scale * (static_cast<float>(levels[i] - 1) + shift);
  }
}

void decode_s(const BlockIQ1S& y, float* x) {
  std::array<std::uint16_t, k_s_subs> words;
  std::memcpy(words.data(), y.qh.data(), sizeof words);
  for (std::size_t k = 0; k < 32; ++k) {
    const unsigned word = words[k / 4];
    const float scale = y.d.value() * static_cast<float>(2 * ((word >> 12) & 7U) + 1);
    const std::size_t index = y.qs[k] | (((word >> (3 * (k % 4))) & 7U) << 8);
    decode_points(index, scale, (word & 0x8000U) != 0 ? -k_shift : k_shift, x + 8 * k);
  }
}

constexpr std::size_t k_m_sub = 16;
constexpr std::size_t k_m_subs = 16;

/// Shifts of the two halves in variant 0 .. 3: ++, +-, -+, --.
const Values& half_values(int variant, std::size_t half) {
  const bool minus = half == 0 ? variant >= 2 : variant % 2 != 0;
  return minus ? k_minus : k_plus;
}

/// Every cut with each pair of shifts; sums from the start for each, in sorted order.
Cut best_cut(const Sub<k_m_sub>& sub) {
  Cut cut;
  for (std::size_t i1 = 0; i1 <= k_m_sub; ++i1) {
    for (std::size_t i2 = i1; i2 <= k_m_sub; ++i2) {
      std::array<float, 4> qx{};
      std::array<float, 4> q2{};
      for (std::size_t j = 0; j < k_m_sub; ++j) {
        const std::size_t i = sub.order[j];
        const std::size_t level = j < i1 ? 0 : j < i2 ? 1 : 2;
        for (int v = 0; v < 4; ++v) {
          const float q = half_values(v, i / 8)[level];
          qx[static_cast<std::size_t>(v)] += sub.weights[i] * q * sub.x[i];
          q2[static_cast<std::size_t>(v)] += sub.weights[i] * q * q;
        }
      }
      for (int v = 0; v < 4; ++v) {
        cut.offer(qx[static_cast<std::size_t>(v)], q2[static_cast<std::size_t>(v)], i1, i2, v);
      }
    }
  }
  return cut;
}

/// What is kept of each sub-block until the super-block's scale is known.
struct MState {
  std::array<float, k_m_subs> scales{};
  std::array<int, k_m_subs> variants{};
  LargestScale max;
};

void place_subs(const float* x, const float* importance, float sigma2, MState& state,
                BlockIQ1M& y) {
  constexpr float k_eps = 1e-7F;
  for (std::size_t s = 0; s < k_m_subs; ++s) {
    Sub<k_m_sub> sub(x + k_m_sub * s, importance != nullptr ? importance + k_m_sub * s : nullptr,
                     sigma2);
    if (sub.magnitude() < k_eps) continue;
    sub.sort();
    Cut cut = best_cut(sub);
    if (cut.variant < 0) continue;
    auto levels = levels_of(cut, sub.order);
    if (cut.scale < 0) {
      mirror(levels);
      cut.scale = -cut.scale;
      cut.variant = 3 - cut.variant;
    }
    const auto values_of = [&cut](std::size_t k) -> const Values& {
      return half_values(cut.variant, k);
    };
    const auto index = place(sub, levels, values_of, cut.scale);
    y.qs[2 * s] = static_cast<std::uint8_t>(index[0] & 255U);
    y.qs[2 * s + 1] = static_cast<std::uint8_t>(index[1] & 255U);
    y.qh[s] = static_cast<std::uint8_t>((index[0] >> 8) | ((index[1] >> 8) << 4));
    state.scales[s] = cut.scale;
    state.variants[s] = cut.variant;
    state.max.add(cut.scale);
  }
}

std::size_t point_index(const BlockIQ1M& y, std::size_t k) {
  const unsigned high = (static_cast<unsigned>(y.qh[k / 2]) >> (4 * (k % 2))) & 7U;
  return y.qs[k] | (high << 8);
}

void quantize_m(const float* x, const float* importance, BlockIQ1M& y) {
  constexpr std::array<std::uint8_t, 4> k_shift_bits{0x00, 0x80, 0x08, 0x88};
  const IqGrid& grid = IqGrid::iq1();
  const float sigma2 = sigma2_of(x);
  MState state;
  y = {};
  place_subs(x, importance, sigma2, state, y);
  if (state.max.zero()) return;
  float d = state.max.value() / 15;
  const float inverse = 1 / d;
  std::array<std::uint16_t, 4> words{};
  float qx = 0;
  float q2 = 0;
  for (std::size_t s = 0; s < k_m_subs; ++s) {
    const int level = scale_level(inverse, state.scales[s]);
    words[s / 4] = static_cast<std::uint16_t>(words[s / 4] | (level << (3 * (s % 4))));
    y.qh[s] = static_cast<std::uint8_t>(y.qh[s] |
                                        k_shift_bits[static_cast<std::size_t>(state.variants[s])]);
    // The scale once more, for all levels and sub-block scales as they are stored.
    const Sub<k_m_sub> sub(x + k_m_sub * s,
                           importance != nullptr ? importance + k_m_sub * s : nullptr, sigma2);
    for (std::size_t i = 0; i < k_m_sub; ++i) {
      const std::uint8_t* levels = grid.levels(point_index(y, 2 * s + i / 8));
      const float q =
          half_values(state.variants[s], i / 8)[levels[i % 8]] * static_cast<float>(2 * level + 1);
      qx += sub.weights[i] * q * sub.x[i];
      q2 += sub.weights[i] * q * q;
    }
  }
  if (q2 > 0) d = qx / q2;
  if (state.max.bad()) d = state.max.value();
  const std::uint16_t half = f32_to_f16(d * 1.1125F);
  for (std::size_t w = 0; w < words.size(); ++w) {
    words[w] = static_cast<std::uint16_t>(words[w] | (((half >> (4 * w)) & 0xF) << 12));
  }
  std::memcpy(y.scales.data(), words.data(), sizeof words);
}

void quantize_m_plain(const float* x, BlockIQ1M& y) {
  quantize_m(x, nullptr, y);
}

void decode_m(const BlockIQ1M& y, float* x) {
  std::array<std::uint16_t, 4> words;
  std::memcpy(words.data(), y.scales.data(), sizeof words);
  unsigned half = 0;
  for (std::size_t w = 0; w < words.size(); ++w) {
    half |= (static_cast<unsigned>(words[w]) >> 12) << (4 * w);
  }
  const float d = f16_to_f32(static_cast<std::uint16_t>(half));
  for (std::size_t k = 0; k < 32; ++k) {
    const std::size_t s = k / 2;
    const unsigned level = (static_cast<unsigned>(words[s / 4]) >> (3 * (s % 4))) & 7U;
    const bool minus = ((y.qh[s] >> (4 * (k % 2))) & 8) != 0;
    decode_points(point_index(y, k), d * static_cast<float>(2 * level + 1),
                  minus ? -k_shift : k_shift, x + 8 * k);
  }
}

void quantize_s_rows(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                     const float* importance, std::byte* out) {
  quantize_blocks<BlockIQ1S, nullptr, quantize_s>(in, rows, row_elements, importance, out);
}

} // namespace

const RowCodec iq1_s_codec{TensorType::iq1_s, ImportanceUse::required, quantize_s_rows,
                           dequantize_blocks<BlockIQ1S, decode_s>};
const RowCodec iq1_m_codec{TensorType::iq1_m, ImportanceUse::optional,
                           quantize_blocks<BlockIQ1M, quantize_m_plain, quantize_m>,
                           dequantize_blocks<BlockIQ1M, decode_m>};

} // namespace modeld::quantize::reference
