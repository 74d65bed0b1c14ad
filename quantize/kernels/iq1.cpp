// SPDX-License-Identifier: Apache-2.0

// IQ1_S and IQ1_M. Layouts, constants and error criteria: quantize/reference/iq1.cpp. Cuts are
// searched with a sub-block in each lane; a group that is off the grid looks for its neighbour with
// a neighbour in each lane. Blocks whose weights leave the floats go to the scalar code.

#include "quantize/gguf/block_layout.hpp"
#include "quantize/kernels/table.hpp"
#include "quantize/reference/super_scale.hpp"

#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/iq1.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/cut_place-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily iq1_family() {
  return {HWY_TARGET, {}};
}

#else

using reference::LargestScale;

HWY_INLINE std::uint32_t point_of(std::int32_t code) {
  return static_cast<std::uint32_t>(
      reference::IqGrid::iq1().find(static_cast<std::uint32_t>(code)));
}

HWY_INLINE std::uint32_t scale_level(float inverse, float scale) {
  return static_cast<std::uint32_t>(std::clamp(nearest_int(0.5F * (inverse * scale - 1.0F)), 0, 7));
}

// IQ1_S ------------------------------------------------------------------------------------------

struct IQ1S {
  using Block = BlockIQ1S;
  static constexpr TensorType k_type = TensorType::iq1_s;
  static constexpr std::size_t k_sub = 32;
  static constexpr float k_eps = 1e-12F;

  /// The sub-blocks of a super-block begin at `lane`.
  static void encode(const CutTile<32>&, const Placed<32>& placed, std::size_t lane, Block& y) {
    std::uint32_t words[8] = {};
    LargestScale max;
    y = {};
    for (std::size_t s = 0; s < 8; ++s, ++lane) {
      if (!placed.found[lane]) continue;
      max.add(placed.scale[lane]);
      for (std::size_t k = 0; k < 4; ++k) {
        const std::uint32_t index = point_of(placed.code[k * k_cut_tile + lane]);
        y.qs[4 * s + k] = static_cast<std::uint8_t>(index & 255U);
        words[s] |= (index >> 8) << (3 * k);
      }
    }
    if (!max.zero()) {
      const float d = max.value() / 15.0F;
      y.d.set(d * 1.125F);
      const float inverse = 1.0F / d;
      for (std::size_t s = 0; s < 8; ++s) {
        const std::size_t at = lane - 8 + s;
        const bool found = placed.found[at];
        words[s] |= scale_level(inverse, found ? placed.scale[at] : 0.0F) << 12;
        if (found && placed.minus[at] != 0) words[s] |= 0x8000U;
      }
    }
    for (std::size_t s = 0; s < 8; ++s) {
      y.qh[2 * s] = static_cast<std::uint8_t>(words[s] & 255U);
      y.qh[2 * s + 1] = static_cast<std::uint8_t>(words[s] >> 8);
    }
  }
};

// IQ1_M ------------------------------------------------------------------------------------------

struct IQ1M {
  using Block = BlockIQ1M;
  static constexpr TensorType k_type = TensorType::iq1_m;
  static constexpr std::size_t k_sub = 16;
  static constexpr float k_eps = 1e-7F;

  static void encode(const CutTile<16>& tile, const Placed<16>& placed, std::size_t, Block& y) {
    LargestScale max;
    y = {};
    for (std::size_t s = 0; s < 16; ++s) {
      if (!placed.found[s]) continue;
      max.add(placed.scale[s]);
      const std::uint32_t first = point_of(placed.code[s]);
      const std::uint32_t second = point_of(placed.code[k_cut_tile + s]);
      y.qs[2 * s] = static_cast<std::uint8_t>(first & 255U);
      y.qs[2 * s + 1] = static_cast<std::uint8_t>(second & 255U);
      y.qh[s] = static_cast<std::uint8_t>(first >> 8 | (second >> 8) << 4);
      if (placed.minus[s] != 0) y.qh[s] |= 0x08;
      if (placed.minus[k_cut_tile + s] != 0) y.qh[s] |= 0x80;
    }
    if (max.zero()) {
      y = {};
      return;
    }
    float d = max.value() / 15.0F;
    const float inverse = 1.0F / d;
    std::uint32_t words[4] = {};
    std::uint32_t levels[16];
    for (std::size_t s = 0; s < 16; ++s) {
      levels[s] = scale_level(inverse, placed.found[s] ? placed.scale[s] : 0.0F);
      words[s / 4] |= levels[s] << (3 * (s % 4));
    }
    d = fit_super(tile, placed, levels, d);
    if (max.bad()) d = max.value();
    const std::uint16_t half = reference::f32_to_f16(d * 1.1125F);
    for (std::size_t w = 0; w < 4; ++w) {
      words[w] |= ((std::uint32_t{half} >> (4 * w)) & 0xFU) << 12;
      y.scales[2 * w] = static_cast<std::uint8_t>(words[w] & 255U);
      y.scales[2 * w + 1] = static_cast<std::uint8_t>(words[w] >> 8);
    }
  }

private:
  /// The scale once more, for all levels and sub-block scales as they are stored: `d` where nothing
  /// is weighted.
  static float fit_super(const CutTile<16>& tile, const Placed<16>& placed,
                         const std::uint32_t* levels, float d) {
    // A sub-block that counts as zero is stored as point 0.
    const std::uint32_t zero_code =
        reference::IqGrid::iq1().code(reference::IqGrid::iq1().levels(0));
    float qx = 0.0F;
    float q2 = 0.0F;
    for (std::size_t s = 0; s < 16; ++s) {
      const auto odd = static_cast<float>(2 * levels[s] + 1);
      for (std::size_t i = 0; i < 16; ++i) {
        const std::size_t half = i / 8;
        const bool found = placed.found[s];
        const auto code =
            found ? static_cast<std::uint32_t>(placed.code[half * k_cut_tile + s]) : zero_code;
        const bool minus = found && placed.minus[half * k_cut_tile + s] != 0;
        const auto level = static_cast<float>((code >> (2 * (i % 8))) & 3U);
        const float q = (level + (minus ? k_minus_base : k_plus_base)) * odd;
        const float wq = tile.weight[i * k_cut_tile + s] * q;
        qx += wq * tile.x[i * k_cut_tile + s];
        q2 += wq * q;
      }
    }
    return q2 > 0.0F ? qx / q2 : d;
  }
};

// Rows -------------------------------------------------------------------------------------------

/// Super-blocks [first, first + count) of a batch, as many as a tile has.
template <class Type>
HWY_INLINE void fill_tile(const Batch& batch, const float* squares, std::size_t first,
                          CutTile<Type::k_sub>& tile) {
  constexpr std::size_t k_subs = k_super / Type::k_sub;
  const float* x[k_cut_tile];
  const float* importance[k_cut_tile];
  alignas(64) float sigma2[k_cut_tile];
  const bool weighted = batch.importance[0] != nullptr;
  for (std::size_t lane = 0; lane < k_cut_tile; ++lane) {
    const std::size_t s = first + lane / k_subs; // within the batch: it repeats its last
    const std::size_t at = lane % k_subs * Type::k_sub;
    x[lane] = batch.x[s] + at;
    importance[lane] = weighted ? batch.importance[s] + at : nullptr;
    sigma2[lane] = 2.0F * squares[s] / 256.0F;
  }
  transpose<k_cut_tile>(x, Type::k_sub, tile.x);
  if (weighted) transpose<k_cut_tile>(importance, Type::k_sub, tile.weight);
  weigh(tile, weighted, sigma2);
}

template <class Type>
void quantize(const float* in, std::uint64_t rows, std::uint64_t row_elements,
              const float* importance, std::byte* out) {
  constexpr std::size_t k_subs = k_super / Type::k_sub;
  constexpr std::size_t k_in_tile = k_cut_tile / k_subs;
  const std::uint64_t supers = rows * row_elements / k_super;
  Batch batch;
  float squares[k_batch];
  CutTile<Type::k_sub> tile;
  Cuts cuts;
  Placed<Type::k_sub> placed;
  auto* block = reinterpret_cast<typename Type::Block*>(out);
  for (std::uint64_t first = 0; first < supers; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, supers - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    sums_of_squares(batch.x, k_super, k_batch, squares);
    for (std::size_t s = 0; s < count; s += k_in_tile) {
      fill_tile<Type>(batch, squares, s, tile);
      search_cuts(tile, cuts);
      place_cuts(tile, cuts, Type::k_eps, placed);
      move_to_points(tile, placed);
      fit_again(tile, placed);
      for (std::size_t u = s; u < std::min(s + k_in_tile, count); ++u, ++block) {
        if (batch.odd[u]) {
          scalar_codec(Type::k_type)
              .quantize(batch.x[u], 1, k_super, batch.importance[u],
                        reinterpret_cast<std::byte*>(block));
        } else {
          Type::encode(tile, placed, (u - s) * k_subs, *block);
        }
      }
    }
  }
}

KernelFamily iq1_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::iq1_s, quantize<IQ1S>, nullptr},
      Kernel{TensorType::iq1_m, quantize<IQ1M>, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(iq1_kernels, iq1_family);
} // namespace modeld::quantize
#endif
