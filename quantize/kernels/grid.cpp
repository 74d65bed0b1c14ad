// SPDX-License-Identifier: Apache-2.0

// IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S. Layouts, constants and error criteria:
// quantize/reference/iq2.cpp and iq3.cpp. Blocks whose sums leave the floats go to the scalar code.

#include "quantize/gguf/block_layout.hpp"
#include "quantize/kernels/neighbour_table.hpp"
#include "quantize/kernels/table.hpp"
#include "quantize/reference/grid_search.hpp"

#include <array>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/grid.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/grid_search-inl.hpp"
#include "quantize/kernels/scale_search-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily grid_family() {
  return {HWY_TARGET, {}};
}

#else

constexpr float k_small_group = 1e-8F; ///< of IQ3_XXS and IQ2_S; the others use k_tiny_group

/// The sub-blocks of one super-block as their searches see them.
struct Super {
  const float* x;
  const float* importance; ///< or null
  float sigma2;
  float largest = 0.0F; ///< scale
  bool sure = true;

  void add(float scale) {
    sure = sure && scale >= 0.0F && scale <= k_largest;
    largest = std::max(largest, scale);
  }
};

/// Weighs sub-block s of N and takes its signs off; `base` is for weights without importance. False
/// where that is for the scalar code.
template <std::size_t N>
HWY_INLINE bool take_block(const Super& super, std::size_t s, float base, Signs signs,
                           GridBlock& block, float& largest) {
  const float* const importance = super.importance != nullptr ? super.importance + N * s : nullptr;
  if (!weigh_block<N>(super.x + N * s, importance, super.sigma2, base, block)) return false;
  largest = take_signs<N>(super.x + N * s, signs, block);
  return true;
}

HWY_INLINE std::uint32_t point_of(const NeighbourTable& table, std::uint32_t code) {
  return static_cast<std::uint32_t>(table.grid().find(code));
}

HWY_INLINE std::uint32_t scale_level(float inverse, float scale) {
  return static_cast<std::uint32_t>(reference::odd_scale_level(inverse, scale, 15));
}

template <class Array>
HWY_INLINE void set_nibble(Array& bytes, std::size_t i, unsigned v) {
  bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] | v << (4 * (i % 2)));
}

// IQ3 --------------------------------------------------------------------------------------------

bool quantize_iq3_xxs(Super& super, BlockIQ3XXS& y) {
  constexpr GridRule k_rule{8, 15, 0.2F, GridRule::Again::off_grid, true};
  const NeighbourTable& table = NeighbourTable::iq3_xxs();
  super.sigma2 = 2.0F * super.sigma2 / 256.0F;
  float scales[8] = {};
  std::uint32_t words[8] = {};
  y = {};
  for (std::size_t s = 0; s < 8; ++s) {
    GridBlock block;
    float max;
    if (!take_block<32>(super, s, 0.0F, Signs::even, block, max)) return false;
    if (max < k_small_group) continue;
    GridFit fit;
    if (!fit_in_lanes<4>(table, k_rule, max, max / 15.0F, Signs::even, block, fit)) return false;
    scales[s] = fit.scale;
    super.add(fit.scale);
    for (std::size_t k = 0; k < 8; ++k) {
      y.qs[8 * s + k] = static_cast<std::uint8_t>(point_of(table, fit.code[k]));
    }
    for (std::size_t k = 0; k < 4; ++k)
      words[s] |= std::uint32_t{block.signs[k]} << (7 * k);
  }
  if (super.largest == 0.0F) {
    y = {};
    return super.sure;
  }
  const float d = super.largest / 31.0F;
  y.d.set(d * 1.0125F);
  const float inverse = 1.0F / d;
  for (std::size_t s = 0; s < 8; ++s)
    words[s] |= scale_level(inverse, scales[s]) << 28;
  std::memcpy(y.scales_and_signs.data(), words, sizeof words);
  return super.sure;
}

bool quantize_iq3_s(Super& super, BlockIQ3S& y) {
  constexpr GridRule k_rule{8, 9, 0.2F, GridRule::Again::all_if_any, false};
  const NeighbourTable& table = NeighbourTable::iq3_s();
  super.sigma2 = 2.0F * super.sigma2 / 256.0F;
  float scales[8] = {};
  y = {};
  for (std::size_t s = 0; s < 8; ++s) {
    GridBlock block;
    float max;
    if (!take_block<32>(super, s, 0.0F, Signs::free, block, max)) return false;
    // What follows a sub-block of zeros has its place in the definition: rare, so it does it.
    if (max == 0.0F) return false;
    GridFit fit;
    if (!fit_in_lanes<4>(table, k_rule, max, max / 15.0F, Signs::free, block, fit)) return false;
    scales[s] = fit.scale;
    super.add(fit.scale);
    for (std::size_t k = 0; k < 8; ++k) {
      const std::uint32_t index = point_of(table, fit.code[k]);
      y.qs[8 * s + k] = static_cast<std::uint8_t>(index & 255U);
      y.qh[s] = static_cast<std::uint8_t>(y.qh[s] | (index >> 8) << k);
    }
    std::memcpy(&y.signs[4 * s], block.signs.data(), 4);
  }
  if (super.largest == 0.0F) return super.sure;
  const float d = super.largest / 31.0F;
  y.d.set(d * 1.033F);
  const float inverse = 1.0F / d;
  for (std::size_t s = 0; s < 8; ++s)
    set_nibble(y.scales, s, scale_level(inverse, scales[s]));
  return super.sure;
}

// IQ2 --------------------------------------------------------------------------------------------

/// Two super-blocks of IQ2_XXS: a fit to levels 0 .. 4, with a sub-block in each lane, gives the
/// scale at which the search of each begins.
struct Starts {
  static constexpr std::size_t k_supers = 2;
  static constexpr std::size_t k_subs = 8;
  static_assert(k_supers * k_subs == k_batch);
  GridBlock blocks[k_batch];
  float largest[k_batch];
  ScaleTile<32> tile;
  bool sure[k_supers];

  void find(const Super* supers) {
    const float* x[k_batch];
    const float* weights[k_batch];
    for (std::size_t u = 0; u < k_supers; ++u)
      sure[u] = true;
    for (std::size_t lane = 0; lane < k_batch; ++lane) {
      const std::size_t u = lane / k_subs;
      GridBlock& block = blocks[lane];
      const bool taken =
          take_block<32>(supers[u], lane % k_subs, 0.0F, Signs::even, block, largest[lane]);
      sure[u] = sure[u] && taken;
      x[lane] = block.x.data();
      weights[lane] = block.weights.data();
    }
    transpose<k_batch>(x, 32, tile.x);
    transpose<k_batch>(weights, 32, tile.weight);
    scale_search(tile, 32, 4);
  }
};

/// Super-block u of `starts`.
bool quantize_iq2_xxs(Super& super, Starts& starts, std::size_t u, BlockIQ2XXS& y) {
  constexpr GridRule k_rule{3, 6, 0.1F, GridRule::Again::all, true};
  const NeighbourTable& table = NeighbourTable::iq2_xxs();
  if (!starts.sure[u]) return false;
  float scales[8] = {};
  std::uint32_t words[16] = {};
  for (std::size_t s = 0; s < 8; ++s) {
    GridBlock& block = starts.blocks[Starts::k_subs * u + s];
    if (starts.largest[Starts::k_subs * u + s] < k_tiny_group) continue;
    const float start = starts.tile.scale[Starts::k_subs * u + s];
    const float reach = start * 3.0F;
    if (reach <= 0.0F) continue;
    if (!(reach <= k_largest)) return false;
    GridFit fit;
    if (!fit_in_lanes<8>(table, k_rule, reach, start, Signs::even, block, fit)) return false;
    scales[s] = fit.scale;
    super.add(fit.scale);
    for (std::size_t k = 0; k < 4; ++k) {
      words[2 * s] |= point_of(table, fit.code[k]) << (8 * k);
      words[2 * s + 1] |= std::uint32_t{block.signs[k]} << (7 * k);
    }
  }
  y = {};
  if (super.largest == 0.0F) return super.sure;
  const float d = super.largest / 31.0F;
  y.d.set(d);
  const float inverse = 1.0F / d;
  for (std::size_t s = 0; s < 8; ++s)
    words[2 * s + 1] |= scale_level(inverse, scales[s]) << 28;
  std::memcpy(y.qs.data(), words, sizeof words);
  return super.sure;
}

/// A sub-block of 16 of IQ2_XS and IQ2_S.
HWY_INLINE bool fit_iq2_16(const NeighbourTable& table, float max, Signs signs, GridBlock& block,
                           GridFit& fit) {
  constexpr GridRule k_rule{3, 9, 0.1F, GridRule::Again::off_grid, true};
  return fit_in_lanes<8>(table, k_rule, max, max / 5.0F, signs, block, fit);
}

bool quantize_iq2_xs(Super& super, BlockIQ2XS& y) {
  const NeighbourTable& table = NeighbourTable::iq2_xs();
  super.sigma2 = super.sigma2 / 256.0F;
  float scales[16] = {};
  std::uint16_t words[32] = {};
  for (std::size_t s = 0; s < 16; ++s) {
    GridBlock block;
    float max;
    if (!take_block<16>(super, s, 0.0F, Signs::even, block, max)) return false;
    if (max < k_tiny_group) continue;
    GridFit fit;
    if (!fit_iq2_16(table, max, Signs::even, block, fit)) return false;
    scales[s] = fit.scale;
    super.add(fit.scale);
    for (std::size_t k = 0; k < 2; ++k) {
      const std::uint32_t index = point_of(table, fit.code[k]);
      words[2 * s + k] = static_cast<std::uint16_t>(index | std::uint32_t{block.signs[k]} << 9);
    }
  }
  y = {};
  if (super.largest == 0.0F) return super.sure;
  const float d = super.largest / 31.0F;
  y.d.set(d);
  const float inverse = 1.0F / d;
  for (std::size_t s = 0; s < 16; ++s)
    set_nibble(y.scales, s, scale_level(inverse, scales[s]));
  std::memcpy(y.qs.data(), words, sizeof words);
  return super.sure;
}

bool quantize_iq2_s(Super& super, BlockIQ2S& y) {
  const NeighbourTable& table = NeighbourTable::iq2_s();
  super.sigma2 = 2.0F * super.sigma2 / 256.0F;
  float scales[16] = {};
  y = {};
  for (std::size_t s = 0; s < 16; ++s) {
    GridBlock block;
    float max;
    if (!take_block<16>(super, s, 0.25F * super.sigma2, Signs::free, block, max)) return false;
    if (max < k_small_group) continue;
    GridFit fit;
    if (!fit_iq2_16(table, max, Signs::free, block, fit)) return false;
    scales[s] = fit.scale;
    super.add(fit.scale);
    for (std::size_t k = 2 * s; k < 2 * s + 2; ++k) {
      const std::uint32_t index = point_of(table, fit.code[k % 2]);
      y.qs[k] = static_cast<std::uint8_t>(index & 255U);
      y.qh[k / 4] = static_cast<std::uint8_t>(y.qh[k / 4] | (index >> 8) << (2 * (k % 4)));
      y.signs[k] = block.signs[k % 2];
    }
  }
  if (super.largest == 0.0F) return super.sure;
  const float d = super.largest / 31.0F;
  y.d.set(d * 0.9875F);
  const float inverse = 1.0F / d;
  for (std::size_t s = 0; s < 16; ++s)
    set_nibble(y.scales, s, scale_level(inverse, scales[s]));
  return super.sure;
}

template <class Block>
HWY_INLINE void quantize_by_definition(TensorType type, const Batch& batch, std::size_t s,
                                       Block& block) {
  scalar_codec(type).quantize(batch.x[s], 1, k_super, batch.importance[s],
                              reinterpret_cast<std::byte*>(&block));
}

template <TensorType Type, class Block, bool (*One)(Super&, Block&)>
void quantize(const float* in, std::uint64_t rows, std::uint64_t row_elements,
              const float* importance, std::byte* out) {
  const std::uint64_t supers = rows * row_elements / k_super;
  Batch batch;
  float squares[k_batch];
  auto* block = reinterpret_cast<Block*>(out);
  for (std::uint64_t first = 0; first < supers; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, supers - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    sums_of_squares(batch.x, k_super, count, squares);
    for (std::size_t s = 0; s < count; ++s, ++block) {
      Super super{batch.x[s], batch.importance[s], squares[s]};
      if (!batch.odd[s] && One(super, *block)) continue;
      quantize_by_definition(Type, batch, s, *block);
    }
  }
}

void quantize_iq2_xxs_rows(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                           const float* importance, std::byte* out) {
  const std::uint64_t supers = rows * row_elements / k_super;
  Batch batch;
  Starts starts;
  float squares[k_batch];
  auto* block = reinterpret_cast<BlockIQ2XXS*>(out);
  for (std::uint64_t first = 0; first < supers; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, supers - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    sums_of_squares(batch.x, k_super, k_batch, squares);
    for (std::size_t s = 0; s < count; s += Starts::k_supers) {
      Super pair[Starts::k_supers] = {
          {batch.x[s], batch.importance[s], squares[s] / 256.0F},
          {batch.x[s + 1], batch.importance[s + 1], squares[s + 1] / 256.0F}};
      starts.find(pair);
      for (std::size_t u = 0; u < Starts::k_supers && s + u < count; ++u, ++block) {
        if (!batch.odd[s + u] && quantize_iq2_xxs(pair[u], starts, u, *block)) continue;
        quantize_by_definition(TensorType::iq2_xxs, batch, s + u, *block);
      }
    }
  }
}

KernelFamily grid_family() {
  using enum TensorType;
  static constexpr std::array k_kernels{
      Kernel{iq3_xxs, quantize<iq3_xxs, BlockIQ3XXS, quantize_iq3_xxs>, nullptr},
      Kernel{iq3_s, quantize<iq3_s, BlockIQ3S, quantize_iq3_s>, nullptr},
      Kernel{iq2_xxs, quantize_iq2_xxs_rows, nullptr},
      Kernel{iq2_xs, quantize<iq2_xs, BlockIQ2XS, quantize_iq2_xs>, nullptr},
      Kernel{iq2_s, quantize<iq2_s, BlockIQ2S, quantize_iq2_s>, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(grid_kernels, grid_family);
} // namespace modeld::quantize
#endif
