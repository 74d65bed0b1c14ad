// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// The searches for a sub-block's scale that several types share. Each tries a few candidate
// scales, rounds to levels, and keeps the candidate with the least weighted error. Sums run in
// element order in single precision; a candidate replaces the best only where it is strictly
// better. The constants are the reference's.

namespace modeld::quantize::reference {

/// Below this a sub-block counts as all zero.
inline constexpr float k_zero_eps = 1e-15F;

/// x ~ scale * (level - nmax), levels 0 .. 2 nmax - 1, signed scale: the largest magnitude maps to
/// -nmax. 19 candidates around nmax, error weighted by `weights`, by x^2 where it is null.
/// All-zero: levels 0, scale 0.
float fit_signed(std::span<const float> x, int nmax, const float* weights, std::int8_t* levels);

/// The same model, weighted by x^2, one start and up to five sweeps that move one level at a time.
float fit_signed_by_sweeps(std::span<const float> x, int nmax, std::int8_t* levels);

/// x ~ scale * level, levels 0 .. nmax, x >= 0 (scales and mins of sub-blocks): 9 candidates, then
/// up to five sweeps. All-zero: levels 0, scale 0.
float fit_unsigned(std::span<const float> x, int nmax, const float* weights, std::uint8_t* levels);

/// How the grid of candidates for fit_affine lies: (first + step * k + nmax) / (max - min).
struct AffineGrid {
  float first;
  float step;
  int last; ///< k = 0 .. last
};

enum class ErrorNorm { squared, absolute };

struct AffineFit {
  float scale;
  float min; ///< what is subtracted: x ~ scale * level - min, min >= 0
};

/// x ~ scale * level - min, levels 0 .. nmax, at most 32 elements. For each candidate the least
/// squares solution of its levels competes, under `norm`. All equal: levels 0, scale 0.
AffineFit fit_affine(std::span<const float> x, const float* weights, int nmax, AffineGrid grid,
                     ErrorNorm norm, std::uint8_t* levels);

} // namespace modeld::quantize::reference
