// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/block_layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// What the K types have in common.

namespace modeld::quantize::reference {

using SuperLevels = std::array<std::uint8_t, k_super>;

/// Scale and min of one sub-block of Q4_K and Q5_K, 6 bits each.
struct ScaleMin {
  std::uint8_t scale;
  std::uint8_t min;
};

/// Writes sub-block j of 8; in ascending order, since the later ones share bytes with the first.
void pack_scale_min(std::size_t j, ScaleMin value, Bytes<12>& scales);
ScaleMin unpack_scale_min(std::size_t j, const Bytes<12>& scales);

/// Scale of sub-block j of 16 in Q3_K: 6 bits, 0 .. 63. Into zeroed bytes.
void pack_q3_scale(std::size_t j, int value, Bytes<12>& scales);
int unpack_q3_scale(std::size_t j, const Bytes<12>& scales);

/// The low two bits of each level as in Q2_K and Q3_K.
void pack_pairs(const SuperLevels& levels, Bytes<64>& qs);
int unpack_pair(std::size_t i, const Bytes<64>& qs);

/// Sum of x^2 over a super-block, in element order.
float sum_of_squares(std::span<const float> x);

/// w[i] = importance[i] * sqrt(sigma2 + x[i]^2). Returns the sum of w.
float importance_weights(std::span<const float> x, const float* importance, float sigma2,
                         float* weights);

/// w[i] = sqrt(mean of x^2) + |x[i]|: what Q4_K and Q5_K use without importance, for a sub-block.
void magnitude_weights(std::span<const float> x, float* weights);

} // namespace modeld::quantize::reference
