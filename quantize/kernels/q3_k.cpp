// SPDX-License-Identifier: Apache-2.0

// Q3_K. Layout and error criteria: quantize/reference/q3_k.cpp.

#include "quantize/kernels/table.hpp"

#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/q3_k.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/q3_sweeps-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily q3_k_family() {
  return {HWY_TARGET, {}};
}

#else

constexpr std::size_t k_q3_bytes = 110; ///< 32 high bits, 64 low pairs, 12 scales, d

HWY_INLINE void pack_q3(const std::uint8_t* levels, std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d;
  std::uint8_t pairs[k_super];
  for (std::size_t i = 0; i < k_super; i += 16) {
    hn::StoreU(hn::And(hn::LoadU(d, levels + i), hn::Set(d, 3)), d, pairs + i);
  }
  for (std::size_t half = 0; half < 32; half += 16) {
    auto mask = hn::Zero(d);
    for (std::size_t k = 8; k-- > 0;) {
      const auto high = hn::ShiftRight<2>(hn::LoadU(d, levels + 32 * k + half));
      mask = hn::Or(hn::ShiftLeft<1>(mask), high);
    }
    hn::StoreU(mask, d, out + half);
  }
  pack_quarters(pairs, out + 32);
  pack_quarters(pairs + 128, out + 64);
}

/// The scales of a batch as they are stored.
struct Q3Scales {
  alignas(64) float scale[k_batch * k_subs]; ///< what a level of sub-block j stands for: [s][j]
  std::uint8_t packed[12][k_batch];
  std::uint16_t d[k_batch];
};

/// Six bits each: the low four of scales j and j + 8 in byte j, the high two of j, j + 4, ... in
/// byte 8 + j.
HWY_INLINE void pack_scales(const std::uint8_t* quantized, Q3Scales& out) {
  const hn::FixedTag<std::uint8_t, k_batch> d;
  const auto row = [&](std::size_t j) HWY_ATTR { return hn::LoadU(d, quantized + j * k_batch); };
  for (std::size_t j = 0; j < 8; ++j) {
    const auto low = hn::And(row(j), hn::Set(d, 15));
    hn::StoreU(hn::Or(low, hn::ShiftLeft<4>(row(j + 8))), d, out.packed[j]);
  }
  for (std::size_t j = 0; j < 4; ++j) {
    const auto first =
        hn::Or(hn::ShiftRight<4>(row(j)), hn::ShiftLeft<2>(hn::ShiftRight<4>(row(j + 4))));
    const auto second =
        hn::Or(hn::ShiftRight<4>(row(j + 8)), hn::ShiftLeft<2>(hn::ShiftRight<4>(row(j + 12))));
    hn::StoreU(hn::Or(first, hn::ShiftLeft<4>(second)), d, out.packed[8 + j]);
  }
}

/// `values`: scale j of super-block s at [j * Width + s]; `found` by super-block.
template <std::size_t Width>
HWY_INLINE void store_scales(const float* values, const SymmetricFound& found, Q3Scales& out) {
  const hn::Rebind<hwy::float16_t, Floats> halves;
  const hn::Rebind<std::uint16_t, Floats> words;
  alignas(64) float scales[k_subs * k_batch];
  std::uint8_t quantized[k_subs * k_batch];
  const float* rows[k_subs];
  for (std::size_t at = 0; at < k_batch; at += hn::Lanes(k_f)) {
    const auto d = hn::DemoteTo(halves, hn::Load(k_f, found.scale + at));
    hn::StoreU(hn::BitCast(words, d), words, out.d + at);
    const FloatV scale = hn::PromoteTo(k_f, d);
    const FloatV inverse = hn::Load(k_f, found.inverse + at);
    const IntV base = hn::ConvertTo(k_i, hn::Load(k_f, found.base + at));
    for (std::size_t j = 0; j < k_subs; ++j) {
      const IntV level = nearest_int(hn::Mul(inverse, hn::Load(k_f, values + j * Width + at)));
      const IntV stored = hn::Add(base, clamp(level, -32, 31));
      store_bytes(stored, quantized + j * k_batch + at);
      const FloatV steps = hn::ConvertTo(k_f, hn::Sub(stored, hn::Set(k_i, 32)));
      hn::Store(hn::Mul(scale, steps), k_f, scales + j * k_batch + at);
    }
  }
  for (std::size_t j = 0; j < k_subs; ++j)
    rows[j] = scales + j * k_batch;
  transpose<k_subs>(rows, k_batch, out.scale);
  pack_scales(quantized, out);
}

/// Super-block s of the batch.
HWY_INLINE void encode_q3(const float* x, std::size_t s, const Q3Scales& scales,
                          const SymmetricFound* found, std::uint8_t* out) {
  alignas(64) std::uint8_t levels[k_super];
  encode_levels(x, scales.scale + s * k_subs, found[s / k_in_tile], (s % k_in_tile) * k_subs,
                k_q3_levels, levels);
  pack_q3(levels, out);
  for (std::size_t k = 0; k < 12; ++k)
    out[96 + k] = scales.packed[k][s];
  std::memcpy(out + 108, &scales.d[s], 2);
}

// Without importance ----------------------------------------------------------------------------

/// Scales without importance: the largest by magnitude becomes -32, the others follow.
HWY_INLINE void plain_q3_scales(const SymmetricFound* found, Q3Scales& out) {
  alignas(64) float values[k_subs * k_batch];
  SymmetricFound of_scales;
  const float* from[k_batch];
  for (std::size_t s = 0; s < k_batch; ++s)
    from[s] = found[s / k_in_tile].scale + (s % k_in_tile) * k_subs;
  transpose<k_batch>(from, k_subs, values);
  const FloatV zero = hn::Zero(k_f);
  for (std::size_t at = 0; at < k_batch; at += hn::Lanes(k_f)) {
    FloatV magnitude;
    const FloatV largest = largest_weight<k_subs, k_batch>(values + at, magnitude);
    const FloatV inverse = hn::Div(set(-32.0F), largest);
    const FloatM none = hn::Eq(largest, zero);
    hn::Store(hn::IfThenElse(none, zero, hn::Div(set(1.0F), inverse)), k_f, of_scales.scale + at);
    hn::Store(hn::IfThenElse(none, zero, inverse), k_f, of_scales.inverse + at);
    hn::Store(hn::IfThenElse(none, zero, set(32.0F)), k_f, of_scales.base + at);
  }
  store_scales<k_batch>(values, of_scales, out);
}

/// False where a sub-block keeps the levels that sweeps left, which nobody has any more: its stored
/// scale is zero beside the others'. The scalar code does these few.
HWY_INLINE bool has_all_levels(const float* scales, const float* inverse) {
  FloatM lost = hn::FirstN(k_f, 0);
  for (std::size_t j = 0; j < k_subs; j += hn::Lanes(k_f)) {
    const FloatM swept = hn::Gt(hn::LoadU(k_f, inverse + j), hn::Zero(k_f));
    lost = hn::Or(lost, hn::And(swept, hn::Eq(hn::LoadU(k_f, scales + j), hn::Zero(k_f))));
  }
  return hn::AllFalse(k_f, lost);
}

// With importance -------------------------------------------------------------------------------

/// Weights of tile t: importance times the root of twice the mean square plus the weight's square.
/// `sums` gets each sub-block's sum of weights.
HWY_INLINE void weigh_q3(Tile& tile, const float* squares, std::size_t t, float* sums) {
  alignas(64) float sigma2[k_tile];
  for (std::size_t lane = 0; lane < k_tile; ++lane) {
    sigma2[lane] = 2.0F * squares[t * k_in_tile + lane / k_subs] / 256.0F;
  }
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    const FloatV sigma = hn::Load(k_f, sigma2 + at);
    FloatV sum = hn::Zero(k_f);
    for (std::size_t i = at; i < k_sub * k_tile; i += k_tile) {
      const FloatV x = hn::Load(k_f, tile.x + i);
      const FloatV root = hn::Sqrt(hn::Add(sigma, hn::Mul(x, x)));
      const FloatV w = hn::Mul(hn::Load(k_f, tile.weight + i), root);
      hn::Store(w, k_f, tile.weight + i);
      sum = hn::Add(sum, w);
    }
    hn::Store(sum, k_f, sums + at);
  }
}

/// The scales of the batch and their weights, super-blocks in lanes, and their own search.
HWY_INLINE void weighted_q3_scales(const SymmetricFound* found, const float* sums, Tile& tile,
                                   Q3Scales& out) {
  SymmetricFound of_scales;
  const float* from[k_tile];
  const float* weights[k_tile];
  for (std::size_t s = 0; s < k_tile; ++s) {
    const std::size_t block = s % k_batch; // the upper half of the lanes repeats the lower
    from[s] = found[block / k_in_tile].scale + (block % k_in_tile) * k_subs;
    weights[s] = sums + block * k_subs;
  }
  transpose<k_tile>(from, k_subs, tile.x);
  transpose<k_tile>(weights, k_subs, tile.weight);
  multiply_weights<k_sub>(tile);
  symmetric_search<k_sub>(tile, 32, of_scales);
  store_scales<k_tile>(tile.x, of_scales, out);
}

HWY_INLINE void weighted_search(const Batch& batch, SymmetricFound* found, Q3Scales& scales) {
  Tile tile;
  alignas(64) float sums[k_batch * k_subs];
  float squares[k_batch];
  const float* lanes[k_tile];
  sums_of_squares(batch.x, k_super, batch.count, squares);
  for (std::size_t t = 0; t < k_tiles; ++t) {
    lanes_of(batch.x, t, lanes);
    transpose<k_tile>(lanes, k_sub, tile.x);
    lanes_of(batch.importance, t, lanes);
    transpose<k_tile>(lanes, k_sub, tile.weight);
    weigh_q3(tile, squares, t, sums + t * k_tile);
    multiply_weights<k_sub>(tile);
    symmetric_search<k_sub>(tile, k_q3_levels, found[t]);
  }
  weighted_q3_scales(found, sums, tile, scales);
}

template <bool Weighted>
void quantize_q3_batch(const Batch& batch, std::byte* out) {
  SymmetricFound found[k_tiles];
  Q3Scales scales;
  if constexpr (Weighted) {
    weighted_search(batch, found, scales);
  } else {
    sweep_search(batch, found);
    plain_q3_scales(found, scales);
  }
  for (std::size_t s = 0; s < batch.count; ++s) {
    std::byte* const to = out + s * k_q3_bytes;
    const SymmetricFound& in = found[s / k_in_tile];
    const std::size_t at = (s % k_in_tile) * k_subs;
    const float* const stored = scales.scale + s * k_subs;
    bool sure = !batch.odd[s] && all_within(in.scale + at, k_subs, k_largest) &&
                all_within(stored, k_subs, k_largest);
    if constexpr (!Weighted) sure = sure && has_all_levels(stored, in.inverse + at);
    if (HWY_LIKELY(sure)) {
      encode_q3(batch.x[s], s, scales, found, reinterpret_cast<std::uint8_t*>(to));
    } else {
      scalar_codec(TensorType::q3_k).quantize(batch.x[s], 1, k_super, batch.importance[s], to);
    }
  }
}

void quantize_q3(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                 const float* importance, std::byte* out) {
  const std::uint64_t blocks = rows * row_elements / k_super;
  Batch batch;
  for (std::uint64_t first = 0; first < blocks; first += k_batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_batch, blocks - first));
    fill_batch(batch, in, importance, row_elements, first, count);
    std::byte* const to = out + first * k_q3_bytes;
    if (importance == nullptr) {
      quantize_q3_batch<false>(batch, to);
    } else {
      quantize_q3_batch<true>(batch, to);
    }
  }
}

KernelFamily q3_k_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::q3_k, quantize_q3, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(q3_k_kernels, q3_k_family);
} // namespace modeld::quantize
#endif
