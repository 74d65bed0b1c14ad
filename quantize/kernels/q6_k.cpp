// SPDX-License-Identifier: Apache-2.0

// Q6_K. Layout and error criterion: quantize/reference/q6_k.cpp.

#include "quantize/kernels/table.hpp"

#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/q6_k.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/symmetric_blocks-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily q6_k_family() {
  return {HWY_TARGET, {}};
}

#else

constexpr std::size_t k_q6_bytes = 210; ///< 128 low nibbles' bytes, 64 of high bits, 16 scales, d

/// Low nibbles and high bit pairs of 128 levels.
HWY_INLINE void pack_q6_half(const std::uint8_t* levels, std::uint8_t* low, std::uint8_t* high) {
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto nibble = hn::Set(d, 15);
  for (std::size_t i = 0; i < 64; i += 16) {
    const auto first = hn::And(hn::LoadU(d, levels + i), nibble);
    hn::StoreU(hn::Or(first, hn::ShiftLeft<4>(hn::LoadU(d, levels + 64 + i))), d, low + i);
  }
  std::uint8_t pairs[128];
  for (std::size_t i = 0; i < 128; i += 16) {
    hn::StoreU(hn::ShiftRight<4>(hn::LoadU(d, levels + i)), d, pairs + i);
  }
  pack_quarters(pairs, high);
}

HWY_INLINE void encode_q6(const float* x, const SymmetricFound& found, std::size_t at,
                          std::uint8_t* out) {
  float largest = 0.0F;
  float magnitude = 0.0F;
  for (std::size_t j = at; j < at + k_subs; ++j) {
    const float size = std::fabs(found.scale[j]);
    if (size > magnitude) {
      magnitude = size;
      largest = found.scale[j];
    }
  }
  if (magnitude < k_tiny_group) {
    std::memset(out, 0, k_q6_bytes);
    return;
  }
  const float inverse = -128.0F / largest;
  const std::uint16_t d = reference::f32_to_f16(1.0F / inverse);
  const float scale = reference::f16_to_f32(d);
  float scales[k_subs];
  for (std::size_t j = 0; j < k_subs; ++j) {
    const auto quantized =
        static_cast<std::int8_t>(std::min(127, nearest_int(inverse * found.scale[at + j])));
    std::memcpy(out + 192 + j, &quantized, 1);
    scales[j] = scale * static_cast<float>(quantized);
  }
  alignas(64) std::uint8_t levels[k_super];
  encode_levels(x, scales, found, at, 32, levels);
  pack_q6_half(levels, out, out + 128);
  pack_q6_half(levels + 128, out + 64, out + 160);
  std::memcpy(out + 208, &d, 2);
}

void quantize_q6(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                 const float* importance, std::byte* out) {
  const std::uint64_t blocks = rows * row_elements / k_super;
  Batch batch;
  Tile tile;
  SymmetricFound found;
  const float* lanes[k_tile];
  for (std::uint64_t first = 0; first < blocks; first += k_in_tile) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_in_tile, blocks - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    lanes_of(batch.x, 0, lanes);
    transpose<k_tile>(lanes, k_sub, tile.x);
    if (importance != nullptr) {
      lanes_of(batch.importance, 0, lanes);
      transpose<k_tile>(lanes, k_sub, tile.weight);
    } else {
      square_weights(tile);
    }
    multiply_weights<k_sub>(tile);
    symmetric_search<k_sub>(tile, 32, found);
    for (std::size_t s = 0; s < count; ++s) {
      std::byte* const to = out + (first + s) * k_q6_bytes;
      if (batch.odd[s]) {
        scalar_codec(TensorType::q6_k).quantize(batch.x[s], 1, k_super, batch.importance[s], to);
      } else {
        encode_q6(batch.x[s], found, s * k_subs, reinterpret_cast<std::uint8_t*>(to));
      }
    }
  }
}

KernelFamily q6_k_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::q6_k, quantize_q6, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(q6_k_kernels, q6_k_family);
} // namespace modeld::quantize
#endif
