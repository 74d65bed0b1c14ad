// SPDX-License-Identifier: Apache-2.0
#include "quantize/reference/scale_search.hpp"

#include "quantize/reference/rounding.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace modeld::quantize::reference {
namespace {

/// The element of the largest magnitude, first of equals, with its sign; 0 where all are zero.
float largest(std::span<const float> x) {
  float magnitude = 0;
  float value = 0;
  for (const float v : x) {
    if (std::fabs(v) > magnitude) {
      magnitude = std::fabs(v);
      value = v;
    }
  }
  return value;
}

int signed_level(float inverse, float x, int nmax) {
  return std::clamp(nearest_int(inverse * x), -nmax, nmax - 1);
}

/// Sums of w x l and w l^2: scale = xl / l2 is the least squares solution for given levels.
struct Sums {
  float xl = 0;
  float l2 = 0;

  void add(float w, float x, int level) {
    const auto l = static_cast<float>(level);
    xl += w * x * l;
    l2 += w * l * l;
  }
  void remove(float w, float x, int level) {
    const auto l = static_cast<float>(level);
    xl -= w * x * l;
    l2 -= w * l * l;
  }
};

Sums signed_sums(std::span<const float> x, int nmax, const float* weights, float inverse) {
  Sums sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float w = weights != nullptr ? weights[i] : x[i] * x[i];
    sums.add(w, x[i], signed_level(inverse, x[i], nmax));
  }
  return sums;
}

void store_signed(std::span<const float> x, int nmax, float inverse, std::int8_t* levels) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    levels[i] = static_cast<std::int8_t>(nmax + signed_level(inverse, x[i], nmax));
  }
}

} // namespace

float fit_signed(std::span<const float> x, int nmax, const float* weights, std::int8_t* levels) {
  const float max = largest(x);
  if (std::fabs(max) < k_zero_eps) {
    std::fill_n(levels, x.size(), std::int8_t{0});
    return 0;
  }
  float inverse = static_cast<float>(-nmax) / max;
  Sums sums = signed_sums(x, nmax, weights, inverse);
  store_signed(x, nmax, inverse, levels);
  float scale = sums.l2 != 0 ? sums.xl / sums.l2 : 0.0F;
  float best = scale * sums.xl;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    inverse = -(static_cast<float>(nmax) + 0.1F * static_cast<float>(step)) / max;
    sums = signed_sums(x, nmax, weights, inverse);
    if (sums.l2 > 0 && sums.xl * sums.xl > best * sums.l2) {
      store_signed(x, nmax, inverse, levels);
      scale = sums.xl / sums.l2;
      best = scale * sums.xl;
    }
  }
  return scale;
}

float fit_signed_by_sweeps(std::span<const float> x, int nmax, std::int8_t* levels) {
  const float max = largest(x);
  if (std::fabs(max) < k_zero_eps) {
    std::fill_n(levels, x.size(), std::int8_t{0});
    return 0;
  }
  const float inverse = static_cast<float>(-nmax) / max;
  Sums sums = signed_sums(x, nmax, nullptr, inverse);
  for (std::size_t i = 0; i < x.size(); ++i) {
    levels[i] = static_cast<std::int8_t>(signed_level(inverse, x[i], nmax));
  }
  bool changed = true;
  for (int sweep = 0; sweep < 5 && changed; ++sweep) {
    changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float w = x[i] * x[i];
      Sums other = sums;
      other.remove(w, x[i], levels[i]);
      if (!(other.xl > 0)) continue;
      const int level = std::clamp(nearest_int(x[i] * other.l2 / other.xl), -nmax, nmax - 1);
      if (level == levels[i]) continue;
      other.add(w, x[i], level);
      if (other.l2 > 0 && other.xl * other.xl * sums.l2 > sums.xl * sums.xl * other.l2) {
        levels[i] = static_cast<std::int8_t>(level);
        sums = other;
        changed = true;
      }
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    levels[i] = static_cast<std::int8_t>(levels[i] + nmax);
  }
  return sums.l2 > 0.0F ? sums.xl / sums.l2 : 0.0F;
}

namespace {

/// Of the nine candidates for fit_unsigned the inverse scale with the least weighted error. The
/// first is rounded without a bound, since max lands on nmax.
float best_unsigned_inverse(std::span<const float> x, int nmax, const float* weights, float max) {
  float best_inverse = static_cast<float>(nmax) / max;
  float scale = 1 / best_inverse;
  float best = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto level = static_cast<std::uint8_t>(nearest_int(best_inverse * x[i]));
    const float diff = x[i] - scale * static_cast<float>(level);
    best += weights[i] * diff * diff;
  }
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const float inverse = (0.1F * static_cast<float>(step) + static_cast<float>(nmax)) / max;
    scale = 1 / inverse;
    float error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int level = std::min(nmax, nearest_int(inverse * x[i]));
      const float diff = x[i] - scale * static_cast<float>(level);
      error += weights[i] * diff * diff;
    }
    if (error < best) {
      best = error;
      best_inverse = inverse;
    }
  }
  return best_inverse;
}

} // namespace

float fit_unsigned(std::span<const float> x, int nmax, const float* weights, std::uint8_t* levels) {
  float max = 0;
  for (const float v : x) {
    max = max > v ? max : v;
  }
  if (max < k_zero_eps) {
    std::fill_n(levels, x.size(), std::uint8_t{0});
    return 0;
  }
  const float inverse = best_unsigned_inverse(x, nmax, weights, max);
  Sums sums;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int level = std::min(nmax, nearest_int(inverse * x[i]));
    levels[i] = static_cast<std::uint8_t>(level);
    sums.add(weights[i], x[i], level);
  }
  bool changed = true;
  for (int sweep = 0; sweep < 5 && changed; ++sweep) {
    changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      Sums other = sums;
      other.remove(weights[i], x[i], levels[i]);
      if (!(other.xl > 0 && other.l2 > 0)) continue;
      const int level = std::min(nmax, nearest_int(x[i] * other.l2 / other.xl));
      if (level == levels[i]) continue;
      other.add(weights[i], x[i], level);
      if (other.xl * other.xl * sums.l2 > sums.xl * sums.xl * other.l2) {
        levels[i] = static_cast<std::uint8_t>(level);
        sums = other;
        changed = true;
      }
    }
  }
  return sums.l2 > 0.0F ? sums.xl / sums.l2 : 0.0F;
}

namespace {

constexpr std::size_t k_affine_max = 32;

/// What does not depend on the candidate.
struct AffineInput {
  std::span<const float> x;
  const float* weights;
  int nmax;
  ErrorNorm norm;
  float min;
  float max;
  float sum_w;
  float sum_x;
};

AffineInput measure(std::span<const float> x, const float* weights, int nmax, ErrorNorm norm) {
  AffineInput in{x, weights, nmax, norm, x[0], x[0], weights[0], weights[0] * x[0]};
  for (std::size_t i = 1; i < x.size(); ++i) {
    if (x[i] < in.min) in.min = x[i];
    if (x[i] > in.max) in.max = x[i];
    in.sum_w += weights[i];
    in.sum_x += weights[i] * x[i];
  }
  if (in.min > 0) in.min = 0;
  return in;
}

void affine_levels(const AffineInput& in, float inverse, float min, std::uint8_t* levels) {
  for (std::size_t i = 0; i < in.x.size(); ++i) {
    const int level = nearest_int(inverse * (in.x[i] - min));
    levels[i] = static_cast<std::uint8_t>(std::clamp(level, 0, in.nmax));
  }
}

float affine_error(const AffineInput& in, float scale, float min, const std::uint8_t* levels) {
  float error = 0;
  for (std::size_t i = 0; i < in.x.size(); ++i) {
    float diff = scale * static_cast<float>(levels[i]) + min - in.x[i];
    diff = in.norm == ErrorNorm::absolute ? std::fabs(diff) : diff * diff;
    error += in.weights[i] * diff;
  }
  return error;
}

/// Least squares for given levels, with min at most 0. False where the levels do not determine it.
bool solve_affine(const AffineInput& in, const std::uint8_t* levels, float& scale, float& min) {
  float sum_l = 0;
  float sum_l2 = 0;
  float sum_xl = 0;
  for (std::size_t i = 0; i < in.x.size(); ++i) {
    const float w = in.weights[i];
    const auto l = static_cast<float>(levels[i]);
    sum_l += w * l;
    sum_l2 += w * l * l;
    sum_xl += w * l * in.x[i];
  }
  const float determinant = in.sum_w * sum_l2 - sum_l * sum_l;
  if (!(determinant > 0)) return false;
  scale = (in.sum_w * sum_xl - in.sum_x * sum_l) / determinant;
  min = (sum_l2 * in.sum_x - sum_l * sum_xl) / determinant;
  if (min > 0) {
    min = 0;
    scale = sum_xl / sum_l2;
  }
  return true;
}

} // namespace

AffineFit fit_affine(std::span<const float> x, const float* weights, int nmax, AffineGrid grid,
                     ErrorNorm norm, std::uint8_t* levels) {
  assert(x.size() <= k_affine_max);
  const AffineInput in = measure(x, weights, nmax, norm);
  if (in.max == in.min) {
    std::fill_n(levels, x.size(), std::uint8_t{0});
    return {0, -in.min};
  }
  float min = in.min;
  float inverse = static_cast<float>(nmax) / (in.max - min);
  float scale = 1 / inverse;
  affine_levels(in, inverse, min, levels);
  float best = affine_error(in, scale, min, levels);
  std::array<std::uint8_t, k_affine_max> candidate{};
  for (int k = 0; k <= grid.last; ++k) {
    // The width shrinks as the best minimum moves: later candidates start from it.
    inverse = (grid.first + grid.step * static_cast<float>(k) + static_cast<float>(nmax)) /
              (in.max - min);
    affine_levels(in, inverse, min, candidate.data());
    float this_scale = 0;
    float this_min = 0;
    if (!solve_affine(in, candidate.data(), this_scale, this_min)) continue;
    const float error = affine_error(in, this_scale, this_min, candidate.data());
    if (error < best) {
      std::copy_n(candidate.data(), x.size(), levels);
      best = error;
      scale = this_scale;
      min = this_min;
    }
  }
  return {scale, -min};
}

} // namespace modeld::quantize::reference
