// SPDX-License-Identifier: Apache-2.0

// What Q3_K and Q6_K share: 16 sub-blocks of 16 with a scale each, quantized in its turn.

#if defined(MODELD_QUANTIZE_KERNELS_SYMMETRIC_BLOCKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_SYMMETRIC_BLOCKS_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_SYMMETRIC_BLOCKS_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_SYMMETRIC_BLOCKS_INL_HPP
#endif

#include "quantize/kernels/symmetric_search-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

inline constexpr std::size_t k_sub = 16;
inline constexpr std::size_t k_subs = 16;
inline constexpr std::size_t k_in_tile = k_tile / k_subs;
inline constexpr std::size_t k_tiles = k_batch / k_in_tile;

using Tile = SymmetricTile<k_sub>;

/// Pointers to the sub-blocks of tile t, one for each lane.
HWY_INLINE void lanes_of(const float* const* blocks, std::size_t t, const float** lanes) {
  for (std::size_t lane = 0; lane < k_tile; ++lane) {
    lanes[lane] = blocks[t * k_in_tile + lane / k_subs] + k_sub * (lane % k_subs);
  }
}

HWY_INLINE void square_weights(Tile& tile) {
  for (std::size_t i = 0; i < k_sub * k_tile; i += hn::Lanes(k_f)) {
    const FloatV x = hn::Load(k_f, tile.x + i);
    hn::Store(hn::Mul(x, x), k_f, tile.weight + i);
  }
}

/// Levels of one super-block: with the quantized scales where they are not zero, else the search's.
HWY_INLINE void encode_levels(const float* x, const float* scales, const SymmetricFound& found,
                              std::size_t at, std::int32_t levels, std::uint8_t* out) {
  for (std::size_t j = 0; j < k_subs; ++j) {
    const std::size_t first = j * k_sub;
    if (scales[j] != 0.0F) {
      levels_of(x + first, k_sub, scales[j], 0.0F, -levels, levels - 1, out + first);
      continue;
    }
    const FloatV inverse = set(found.inverse[at + j]);
    const IntV base = hn::Set(k_i, static_cast<std::int32_t>(found.base[at + j]));
    for (std::size_t i = first; i < first + k_sub; i += hn::Lanes(k_f)) {
      const IntV level = nearest_int(hn::Mul(inverse, hn::LoadU(k_f, x + i)));
      store_bytes(hn::Add(base, clamp(level, -levels, levels - 1)), out + i);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
