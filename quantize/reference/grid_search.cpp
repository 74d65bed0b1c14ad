// SPDX-License-Identifier: Apache-2.0
#include "quantize/reference/grid_search.hpp"

#include "quantize/reference/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace modeld::quantize::reference {
namespace {

std::uint8_t level_of(float inverse, float x, int top) {
  return static_cast<std::uint8_t>(std::clamp(nearest_int(0.5F * (inverse * x - 1)), 0, top - 1));
}

float odd(std::uint8_t level) {
  return static_cast<float>(2 * level + 1);
}

/// Of the neighbours of `code` the one of least error for `scale`, the first of equals.
std::size_t best_neighbour(const IqGrid& grid, std::uint32_t code, const float* x,
                           const float* roots, float scale) {
  const auto neighbours = grid.neighbours(code);
  std::size_t best = neighbours.front();
  float least = std::numeric_limits<float>::max();
  for (const std::uint16_t point : neighbours) {
    const std::uint8_t* levels = grid.levels(point);
    float error = 0;
    for (std::size_t i = 0; i < grid.group(); ++i) {
      const float difference = scale * odd(levels[i]) - x[i];
      error += roots[i] * difference * difference;
    }
    if (error < least) {
      least = error;
      best = point;
    }
  }
  return best;
}

/// Rounds one group; tells whether it was on the grid by itself.
bool place_group(const IqGrid& grid, int top, float inverse, float scale, const GridBlock& block,
                 std::size_t at, std::uint8_t* levels) {
  for (std::size_t i = 0; i < grid.group(); ++i) {
    levels[at + i] = level_of(inverse, block.x[at + i], top);
  }
  const std::uint32_t code = grid.code(levels + at);
  if (grid.find(code) >= 0) return true;
  const std::size_t point =
      best_neighbour(grid, code, block.x.data() + at, block.roots.data() + at, scale);
  std::copy_n(grid.levels(point), grid.group(), levels + at);
  return false;
}

struct Sums {
  float qx = 0;
  float q2 = 0;
};

Sums sums_for(const GridBlock& block, const std::uint8_t* levels) {
  Sums sums;
  for (std::size_t i = 0; i < block.size; ++i) {
    const float q = odd(levels[i]);
    sums.qx += block.weights[i] * block.x[i] * q;
    sums.q2 += block.weights[i] * q * q;
  }
  return sums;
}

using OnGrid = std::array<bool, k_grid_block / 4>;

/// Groups that are placed again for the scale found.
bool is_placed_again(GridRule::Again rule, bool on_grid) {
  return rule != GridRule::Again::off_grid || !on_grid;
}

void place_again(const IqGrid& grid, const GridRule& rule, const OnGrid& on_grid,
                 const GridBlock& block, GridFit& fit) {
  const std::size_t groups = block.size / grid.group();
  const bool any = std::find(on_grid.begin(), on_grid.begin() + static_cast<std::ptrdiff_t>(groups),
                             false) != on_grid.begin() + static_cast<std::ptrdiff_t>(groups);
  if (!(fit.scale > 0) || (!any && rule.again != GridRule::Again::all)) return;
  const float inverse = 1 / fit.scale;
  for (std::size_t k = 0; k < groups; ++k) {
    if (!is_placed_again(rule.again, on_grid[k])) continue;
    place_group(grid, rule.top, inverse, fit.scale, block, k * grid.group(), fit.levels.data());
  }
  const Sums sums = sums_for(block, fit.levels.data());
  if (sums.q2 > 0) fit.scale = sums.qx / sums.q2;
}

} // namespace

void take_signs(std::span<const float> in, Signs rule, GridBlock& block) {
  for (std::size_t k = 0; k < in.size(); k += 8) {
    unsigned signs = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const bool negative = !(in[k + i] >= 0);
      block.x[k + i] = negative ? -in[k + i] : in[k + i];
      signs |= (negative ? 1U : 0U) << i;
    }
    if (rule == Signs::even) {
      if (__builtin_popcount(signs) % 2 != 0) {
        const auto cost = [&](std::size_t i) {
          return block.weights[k + i] * in[k + i] * in[k + i];
        };
        std::size_t cheapest = 0;
        for (std::size_t i = 1; i < 8; ++i) {
          if (cost(i) < cost(cheapest)) cheapest = i;
        }
        block.x[k + cheapest] = -block.x[k + cheapest];
        signs ^= 1U << cheapest;
      }
      signs &= 127U;
    }
    block.signs[k / 8] = static_cast<std::uint8_t>(signs);
  }
}

void set_weights(std::span<const float> in, const float* importance, float sigma2,
                 GridBlock& block) {
  block.size = in.size();
  for (std::size_t i = 0; i < in.size(); ++i) {
    block.weights[i] = importance[i] * std::sqrt(sigma2 + in[i] * in[i]);
    block.roots[i] = std::sqrt(block.weights[i]);
  }
}

float largest(const GridBlock& block) {
  float max = block.x[0];
  for (std::size_t i = 1; i < block.size; ++i) {
    max = max > block.x[i] ? max : block.x[i];
  }
  return max;
}

GridFit fit_on_grid(const IqGrid& grid, const GridRule& rule, float reach, const GridFit& start,
                    Signs signs, GridBlock& block) {
  GridFit fit = start;
  OnGrid on_grid;
  on_grid.fill(rule.start_on_grid);
  float best = 0;
  const auto top_odd = static_cast<float>(2 * rule.top - 1);
  for (int t = -rule.tries; t <= rule.tries; ++t) {
    const float inverse = (top_odd + static_cast<float>(t) * rule.step) / reach;
    const float scale = 1 / inverse;
    std::array<std::uint8_t, k_grid_block> levels{};
    OnGrid levels_on_grid{};
    for (std::size_t k = 0; k < block.size / grid.group(); ++k) {
      levels_on_grid[k] =
          place_group(grid, rule.top, inverse, scale, block, k * grid.group(), levels.data());
    }
    const Sums sums = sums_for(block, levels.data());
    if (sums.q2 > 0 && sums.qx * sums.qx > best * sums.q2) {
      fit.scale = sums.qx / sums.q2;
      best = fit.scale * sums.qx;
      fit.levels = levels;
      on_grid = levels_on_grid;
    }
  }
  place_again(grid, rule, on_grid, block, fit);
  if (fit.scale < 0) {
    fit.scale = -fit.scale;
    const unsigned mask = signs == Signs::even ? 127U : 255U;
    for (std::uint8_t& s : block.signs) {
      s = static_cast<std::uint8_t>(~s & mask);
    }
  }
  return fit;
}

int odd_scale_level(float inverse, float scale, int top) {
  return std::clamp(nearest_int(0.5F * (inverse * scale - 1)), 0, top);
}

} // namespace modeld::quantize::reference
