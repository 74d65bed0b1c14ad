// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/reference/iq_grid.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// What the IQ2 and IQ3 types share: magnitudes on a grid of points, signs apart, one scale for 16
// or 32 elements. For each candidate scale the levels are rounded; a group that is off the grid
// takes the neighbouring point of least error; the candidate whose least squares scale explains
// most wins. Then the groups are placed again for that scale.

namespace modeld::quantize::reference {

inline constexpr std::size_t k_grid_block = 32; ///< the largest sub-block

/// One sub-block: magnitudes with their weights, and the signs that were taken off.
struct GridBlock {
  std::size_t size = k_grid_block;
  std::array<float, k_grid_block> x; ///< >= 0, but for what an even number of signs costs
  std::array<float, k_grid_block> weights;
  std::array<float, k_grid_block> roots; ///< of the weights: what a group's error is weighted by
  std::array<std::uint8_t, k_grid_block / 8>
      signs; ///< bit i of group k: element 8 k + i is below 0
};

enum class Signs {
  free, ///< 8 bits for 8 elements
  even, ///< 7 bits: their number is even; the sign that costs least is flipped for it
};

/// Fills x and signs from the elements; weights must be set.
void take_signs(std::span<const float> in, Signs rule, GridBlock& block);
/// Sets weights and their roots: importance * sqrt(sigma2 + x^2).
void set_weights(std::span<const float> in, const float* importance, float sigma2,
                 GridBlock& block);

struct GridRule {
  int top;    ///< levels: 3 or 8
  int tries;  ///< candidates - tries .. tries
  float step; ///< between candidates, in units of the largest level's odd number
  enum class Again {
    off_grid,   ///< groups that were off the grid are placed again
    all_if_any, ///< all, where one was
    all,
  } again;
  bool start_on_grid; ///< how groups count where no candidate was accepted
};

struct GridFit {
  float scale = 0;
  std::array<std::uint8_t, k_grid_block> levels{}; ///< all groups on the grid
};

/// `reach`: the value that the largest odd number 2 top - 1 stands for in the middle candidate.
/// `start`: the scale and levels where no candidate is accepted. A negative scale is turned
/// positive, and all signs with it.
GridFit fit_on_grid(const IqGrid& grid, const GridRule& rule, float reach, const GridFit& start,
                    Signs signs, GridBlock& block);

/// Largest of x, at least the first.
float largest(const GridBlock& block);

/// 4 bits for (scale / d - 1) / 2, rounded.
int odd_scale_level(float inverse, float scale, int top);

} // namespace modeld::quantize::reference
