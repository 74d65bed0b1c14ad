// SPDX-License-Identifier: Apache-2.0

// Before the search of an IQ2 or IQ3 type: weights of a sub-block and its signs.

#if defined(MODELD_QUANTIZE_KERNELS_GRID_SIGNS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_GRID_SIGNS_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_GRID_SIGNS_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_GRID_SIGNS_INL_HPP
#endif

#include "quantize/kernels/grid_lines-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

using reference::Signs;

/// Weights of a sub-block and their roots: importance * sqrt(sigma2 + x^2); without importance
/// base + x^2. Whether all weights are such that a group's cheapest sign can be told by a minimum.
template <std::size_t N>
HWY_INLINE bool weigh_block(const float* x, const float* importance, float sigma2, float base,
                            GridBlock& block) {
  block.size = N;
  FloatM bad = hn::FirstN(k_f, 0);
  for (std::size_t i = 0; i < N; i += hn::Lanes(k_f)) {
    const FloatV v = hn::LoadU(k_f, x + i);
    FloatV w = hn::Add(set(base), hn::Mul(v, v));
    if (importance != nullptr) {
      const FloatV root = hn::Sqrt(hn::Add(set(sigma2), hn::Mul(v, v)));
      w = hn::Mul(hn::LoadU(k_f, importance + i), root);
    }
    bad = hn::Or(bad, hn::Not(hn::Le(w, set(k_largest))));
    hn::StoreU(w, k_f, block.weights.data() + i);
    hn::StoreU(hn::Sqrt(w), k_f, block.roots.data() + i);
  }
  return hn::AllFalse(k_f, bad);
}

/// Of a group of eight the element whose sign costs least, the first of equals.
HWY_INLINE unsigned cheapest_sign(const float* x, const float* weights) {
  const hn::CappedTag<float, 8> d;
  alignas(32) float cost[8];
  for (std::size_t i = 0; i < 8; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    hn::Store(hn::Mul(hn::Mul(hn::LoadU(d, weights + i), v), v), d, cost + i);
  }
  auto least = hn::Load(d, cost);
  for (std::size_t i = hn::Lanes(d); i < 8; i += hn::Lanes(d))
    least = hn::Min(least, hn::Load(d, cost + i));
  least = hn::MinOfLanes(d, least);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 8; i += hn::Lanes(d))
    bits |= mask_bits(d, hn::Eq(hn::Load(d, cost + i), least)) << i;
  return static_cast<unsigned>(std::countr_zero(bits));
}

/// reference::take_signs. Returns the largest x.
template <std::size_t N>
HWY_INLINE float take_signs(const float* x, Signs rule, GridBlock& block) {
  std::uint32_t negative = 0;
  for (std::size_t i = 0; i < N; i += hn::Lanes(k_f)) {
    const FloatV v = hn::LoadU(k_f, x + i);
    const FloatM below = hn::Lt(v, hn::Zero(k_f));
    hn::StoreU(hn::IfThenElse(below, hn::Neg(v), v), k_f, block.x.data() + i);
    negative |= mask_bits(k_f, below) << i;
  }
  for (std::size_t k = 0; k < N / 8; ++k) {
    unsigned signs = negative >> (8 * k) & 255U;
    if (rule == Signs::even) {
      if (std::popcount(signs) % 2 != 0) {
        const unsigned i = cheapest_sign(x + 8 * k, block.weights.data() + 8 * k);
        block.x[8 * k + i] = -block.x[8 * k + i];
        signs ^= 1U << i;
      }
      signs &= 127U;
    }
    block.signs[k] = static_cast<std::uint8_t>(signs);
  }
  FloatV largest = hn::LoadU(k_f, block.x.data());
  for (std::size_t i = hn::Lanes(k_f); i < N; i += hn::Lanes(k_f))
    largest = hn::Max(largest, hn::LoadU(k_f, block.x.data() + i));
  return hn::GetLane(hn::MaxOfLanes(k_f, largest));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
