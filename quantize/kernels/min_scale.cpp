// SPDX-License-Identifier: Apache-2.0

// Q2_K, Q4_K, Q5_K: sub-blocks with a scale and a minimum, both quantized in their turn. Layouts
// and error criteria: quantize/reference/.

#include "quantize/kernels/table.hpp"

#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/min_scale.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/blocks-inl.hpp"
#include "quantize/kernels/min_search-inl.hpp"
#include "quantize/kernels/scale_search-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily min_scale_family() {
  return {HWY_TARGET, {}};
}

#else

/// What the search of a batch found, and what becomes of it. Sub-block j of super-block s stands at
/// [s * subs + j] in `found`'s arrays, tile after tile.
struct Quantized {
  std::uint8_t scale[16]; ///< of each sub-block
  std::uint8_t min[16];
  std::uint16_t d; ///< binary16
  std::uint16_t dmin;
};

/// Q4_K and Q5_K: 8 sub-blocks of 32, scales and minima of 6 bits.
template <int Top>
struct SixBitScales {
  static constexpr std::size_t k_sub = 32;
  static constexpr std::size_t k_subs = 8;
  static constexpr std::int32_t k_scale_top = 63;
  static constexpr bool k_absolute = false;
  static constexpr MinSearch k_weighted{Top, -0.9F, 0.05F, 36, false};
  static constexpr float k_sigma_factor = 2.0F;

  /// The average magnitude (root of mean square) plus each magnitude.
  static HWY_INLINE void plain_weights(MinTile<k_sub>& tile) {
    for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
      FloatV sum = hn::Zero(k_f);
      for (std::size_t i = at; i < k_sub * k_tile; i += k_tile) {
        const FloatV x = hn::Load(k_f, tile.x + i);
        sum = hn::Add(sum, hn::Mul(x, x));
      }
      const FloatV average = hn::Sqrt(hn::Div(sum, set(32.0F)));
      for (std::size_t i = at; i < k_sub * k_tile; i += k_tile) {
        const FloatV x = hn::Load(k_f, tile.x + i);
        hn::Store(hn::Add(average, hn::Abs(x)), k_f, tile.weight + i);
      }
    }
  }

  static void quantize_scales(const float* scales, const float* mins, Quantized& q) {
    float max_scale = 0.0F;
    float max_min = 0.0F;
    for (std::size_t j = 0; j < k_subs; ++j) {
      if (scales[j] > max_scale) max_scale = scales[j];
      if (mins[j] > max_min) max_min = mins[j];
    }
    const float scale_inverse = max_scale > 0.0F ? 63.0F / max_scale : 0.0F;
    const float min_inverse = max_min > 0.0F ? 63.0F / max_min : 0.0F;
    for (std::size_t j = 0; j < k_subs; ++j) {
      const auto scale = static_cast<std::uint8_t>(nearest_int(scale_inverse * scales[j]));
      const auto min = static_cast<std::uint8_t>(nearest_int(min_inverse * mins[j]));
      q.scale[j] = std::min<std::uint8_t>(63, scale);
      q.min[j] = std::min<std::uint8_t>(63, min);
    }
    q.d = reference::f32_to_f16(max_scale / 63.0F);
    q.dmin = reference::f32_to_f16(max_min / 63.0F);
  }

  /// d, dmin and the twelve bytes of eight scales and eight minima.
  static void pack_scales(const Quantized& q, std::uint8_t* out) {
    std::memcpy(out, &q.d, 2);
    std::memcpy(out + 2, &q.dmin, 2);
    std::uint8_t* const scales = out + 4;
    for (std::size_t j = 0; j < 4; ++j) {
      const auto high_scale = static_cast<std::uint8_t>((q.scale[j + 4] >> 4) << 6);
      const auto high_min = static_cast<std::uint8_t>((q.min[j + 4] >> 4) << 6);
      scales[j] = q.scale[j] | high_scale;
      scales[j + 4] = q.min[j] | high_min;
      scales[j + 8] = static_cast<std::uint8_t>((q.scale[j + 4] & 15) | (q.min[j + 4] & 15) << 4);
    }
  }
};

struct Q4K : SixBitScales<15> {
  static constexpr TensorType k_type = TensorType::q4_k;
  static constexpr std::size_t k_bytes = 144;
  static constexpr MinSearch k_plain{15, -1.0F, 0.1F, 20, false};

  static void pack(const Quantized& q, const std::uint8_t* levels, std::uint8_t* out) {
    pack_scales(q, out);
    const hn::FixedTag<std::uint8_t, 16> d;
    for (std::size_t i = 0; i < k_super / 2; i += 16) {
      const std::uint8_t* const from = levels + 64 * (i / 32) + i % 32;
      const auto high = hn::ShiftLeft<4>(hn::LoadU(d, from + 32));
      hn::StoreU(hn::Or(hn::LoadU(d, from), high), d, out + 16 + i);
    }
  }
};

struct Q5K : SixBitScales<31> {
  static constexpr TensorType k_type = TensorType::q5_k;
  static constexpr std::size_t k_bytes = 176;
  static constexpr MinSearch k_plain{31, -0.5F, 0.1F, 15, false};

  static void pack(const Quantized& q, const std::uint8_t* levels, std::uint8_t* out) {
    pack_scales(q, out);
    const hn::FixedTag<std::uint8_t, 16> d;
    const auto nibble = hn::Set(d, 15);
    for (std::size_t half = 0; half < 32; half += 16) {
      auto fifth = hn::Zero(d);
      for (std::size_t k = 4; k-- > 0;) {
        const auto first = hn::LoadU(d, levels + 64 * k + half);
        const auto second = hn::LoadU(d, levels + 64 * k + 32 + half);
        fifth = hn::Or(hn::ShiftLeft<1>(fifth), hn::ShiftRight<4>(second));
        fifth = hn::Or(hn::ShiftLeft<1>(fifth), hn::ShiftRight<4>(first));
        const auto low = hn::Or(hn::And(first, nibble), hn::ShiftLeft<4>(second));
        hn::StoreU(low, d, out + 48 + 32 * k + half);
      }
      hn::StoreU(fifth, d, out + 16 + half);
    }
  }
};

/// 16 sub-blocks of 16, scales and minima of 4 bits.
struct Q2K {
  static constexpr TensorType k_type = TensorType::q2_k;
  static constexpr std::size_t k_bytes = 84;
  static constexpr std::size_t k_sub = 16;
  static constexpr std::size_t k_subs = 16;
  static constexpr std::int32_t k_scale_top = 15;
  static constexpr bool k_absolute = true;
  static constexpr MinSearch k_plain{3, -0.5F, 0.1F, 15, true};
  static constexpr MinSearch k_weighted{3, -0.9F, 0.05F, 36, false};
  static constexpr float k_sigma_factor = 1.0F;

  static HWY_INLINE void plain_weights(MinTile<k_sub>& tile) {
    for (std::size_t i = 0; i < k_sub * k_tile; i += hn::Lanes(k_f)) {
      hn::Store(hn::Abs(hn::Load(k_f, tile.x + i)), k_f, tile.weight + i);
    }
  }

  /// Levels of four bits and their binary16 scale; the largest value has level 15.
  static std::uint16_t quantize_values(const float* values, std::uint8_t* levels) {
    float max = 0.0F;
    for (std::size_t j = 0; j < k_subs; ++j) {
      if (values[j] > max) max = values[j];
    }
    const float inverse = max > 0.0F ? 15.0F / max : 0.0F;
    for (std::size_t j = 0; j < k_subs; ++j) {
      levels[j] = max > 0.0F ? static_cast<std::uint8_t>(nearest_int(inverse * values[j])) : 0;
    }
    return reference::f32_to_f16(max > 0.0F ? max / 15.0F : 0.0F);
  }

  static void quantize_scales(const float* scales, const float* mins, Quantized& q) {
    q.d = quantize_values(scales, q.scale);
    q.dmin = quantize_values(mins, q.min);
    for (std::size_t j = 0; j < k_subs; ++j) {
      // The two share a byte: a scale that is no nibble spills into the minimum, as it does there.
      const auto both = static_cast<std::uint8_t>(q.scale[j] | q.min[j] << 4);
      q.scale[j] = both & 15;
      q.min[j] = both >> 4;
    }
  }

  static void pack(const Quantized& q, const std::uint8_t* levels, std::uint8_t* out) {
    for (std::size_t j = 0; j < k_subs; ++j) {
      out[j] = static_cast<std::uint8_t>(q.scale[j] | q.min[j] << 4);
    }
    pack_quarters(levels, out + 16);
    pack_quarters(levels + 128, out + 48);
    std::memcpy(out + 80, &q.d, 2);
    std::memcpy(out + 82, &q.dmin, 2);
  }
};

template <class Type>
constexpr std::size_t k_tiles = k_batch* Type::k_subs / k_tile;

/// Importance times the root of the super-block's mean square plus the weight's square.
template <class Type>
HWY_INLINE void weigh(MinTile<Type::k_sub>& tile, const float* const* importance,
                      const float* sigma2) {
  transpose<k_tile>(importance, Type::k_sub, tile.weight);
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    const FloatV sigma = hn::Load(k_f, sigma2 + at);
    for (std::size_t i = at; i < Type::k_sub * k_tile; i += k_tile) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      const FloatV root = hn::Sqrt(hn::Add(sigma, hn::Mul(x, x)));
      hn::Store(hn::Mul(hn::Load(k_f, tile.weight + i), root), k_f, tile.weight + i);
    }
  }
}

template <class Type>
HWY_INLINE void search_batch(const Batch& batch, MinFound* found) {
  constexpr std::size_t k_in_tile = k_tile / Type::k_subs;
  const bool weighted = batch.importance[0] != nullptr;
  alignas(64) MinTile<Type::k_sub> tile;
  alignas(64) float sigma2[k_tile];
  float squares[k_batch];
  if (weighted) sums_of_squares(batch.x, k_super, batch.count, squares);
  for (std::size_t t = 0; t * k_in_tile < batch.count; ++t) {
    const float* x[k_tile];
    const float* importance[k_tile];
    for (std::size_t lane = 0; lane < k_tile; ++lane) {
      const std::size_t s = t * k_in_tile + lane / Type::k_subs;
      const std::size_t offset = Type::k_sub * (lane % Type::k_subs);
      x[lane] = batch.x[s] + offset;
      if (!weighted) continue;
      importance[lane] = batch.importance[s] + offset;
      sigma2[lane] = Type::k_sigma_factor * squares[s] / 256.0F;
    }
    transpose<k_tile>(x, Type::k_sub, tile.x);
    if (weighted) {
      weigh<Type>(tile, importance, sigma2);
      min_search<Type::k_sub, false>(tile, Type::k_weighted, found[t]);
    } else {
      Type::plain_weights(tile);
      min_search<Type::k_sub, Type::k_absolute>(tile, Type::k_plain, found[t]);
    }
  }
}

/// `values` by sub-block into lanes of super-blocks.
template <class Type, std::size_t Member>
HWY_INLINE void to_scale_tile(const MinFound* found, float* tile) {
  constexpr std::size_t k_in_tile = k_tile / Type::k_subs;
  const float* from[k_batch];
  for (std::size_t s = 0; s < k_batch; ++s) {
    const MinFound& in = found[s / k_in_tile];
    const float* const values[] = {in.scale, in.negative_min, in.sum_w};
    from[s] = values[Member] + (s % k_in_tile) * Type::k_subs;
  }
  transpose<k_batch>(from, Type::k_subs, tile);
}

/// The weighted way from scales and minima to their levels: a search of its own for each.
template <class Type>
HWY_INLINE void quantize_scales_weighted(const Batch& batch, const MinFound* found, Quantized* q) {
  ScaleTile scales;
  ScaleTile mins;
  to_scale_tile<Type, 0>(found, scales.x);
  to_scale_tile<Type, 2>(found, scales.weight);
  to_scale_tile<Type, 1>(found, mins.x);
  std::memcpy(mins.weight, scales.weight, sizeof mins.weight);
  scale_search(scales, Type::k_subs, Type::k_scale_top);
  scale_search(mins, Type::k_subs, Type::k_scale_top);
  for (std::size_t s = 0; s < batch.count; ++s) {
    for (std::size_t j = 0; j < Type::k_subs; ++j) {
      q[s].scale[j] = static_cast<std::uint8_t>(scales.level[j * k_batch + s]);
      q[s].min[j] = static_cast<std::uint8_t>(mins.level[j * k_batch + s]);
    }
    q[s].d = reference::f32_to_f16(scales.scale[s]);
    q[s].dmin = reference::f32_to_f16(mins.scale[s]);
  }
}

/// Super-blocks in which a lane was unsure, or has a scale that the weighted search cannot take.
template <class Type>
HWY_INLINE void mark_odd(Batch& batch, const MinFound* found) {
  constexpr std::size_t k_in_tile = k_tile / Type::k_subs;
  for (std::size_t s = 0; s < batch.count; ++s) {
    const MinFound& in = found[s / k_in_tile];
    const std::size_t at = (s % k_in_tile) * Type::k_subs;
    for (std::size_t j = at; j < at + Type::k_subs; ++j) {
      const bool sure = in.unsure[j] == 0.0F && in.scale[j] >= 0.0F && in.scale[j] <= k_largest;
      if (!sure) batch.odd[s] = true;
    }
  }
}

/// Levels of all weights with the quantized scales; where a scale is zero, those of the search.
template <class Type>
HWY_INLINE void encode(const float* x, const Quantized& q, const MinFound& found, std::size_t at,
                       std::byte* out) {
  alignas(64) std::uint8_t levels[k_super];
  constexpr std::int32_t k_top = Type::k_plain.top;
  const float d = reference::f16_to_f32(q.d);
  const float dmin = reference::f16_to_f32(q.dmin);
  for (std::size_t j = 0; j < Type::k_subs; ++j) {
    const float scale = d * static_cast<float>(q.scale[j]);
    const std::size_t first = j * Type::k_sub;
    if (scale != 0.0F) {
      const float low = dmin * static_cast<float>(q.min[j]);
      levels_of(x + first, Type::k_sub, scale, low, 0, k_top, levels + first);
      continue;
    }
    const FloatV inverse = set(found.inverse[at + j]);
    const FloatV offset = set(found.offset[at + j]);
    for (std::size_t i = first; i < first + Type::k_sub; i += hn::Lanes(k_f)) {
      const FloatV v = hn::Mul(inverse, hn::Sub(hn::LoadU(k_f, x + i), offset));
      store_bytes(clamp(nearest_int(v), 0, k_top), levels + i);
    }
  }
  Type::pack(q, levels, reinterpret_cast<std::uint8_t*>(out));
}

template <class Type>
void quantize(const float* in, std::uint64_t rows, std::uint64_t row_elements,
              const float* importance, std::byte* out) {
  constexpr std::size_t k_in_tile = k_tile / Type::k_subs;
  const std::uint64_t blocks = rows * row_elements / k_super;
  Batch batch;
  MinFound found[k_tiles<Type>];
  // A batch's last tiles may be without super-blocks; the scale search reads them all the same.
  std::memset(found, 0, sizeof found);
  Quantized q[k_batch];
  for (std::uint64_t first = 0; first < blocks; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, blocks - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    search_batch<Type>(batch, found);
    mark_odd<Type>(batch, found);
    if (importance != nullptr) quantize_scales_weighted<Type>(batch, found, q);
    for (std::size_t s = 0; s < count; ++s) {
      std::byte* const to = out + (first + s) * Type::k_bytes;
      if (batch.odd[s]) {
        scalar_codec(Type::k_type).quantize(batch.x[s], 1, k_super, batch.importance[s], to);
        continue;
      }
      const MinFound& of = found[s / k_in_tile];
      const std::size_t at = (s % k_in_tile) * Type::k_subs;
      if (importance == nullptr) Type::quantize_scales(of.scale + at, of.negative_min + at, q[s]);
      encode<Type>(batch.x[s], q[s], of, at, to);
    }
  }
}

KernelFamily min_scale_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::q2_k, quantize<Q2K>, nullptr},
      Kernel{TensorType::q4_k, quantize<Q4K>, nullptr},
      Kernel{TensorType::q5_k, quantize<Q5K>, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(min_scale_kernels, min_scale_family);
} // namespace modeld::quantize
#endif
