// SPDX-License-Identifier: Apache-2.0

// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: blocks of 32 with a binary16 scale. Without importance a block
// needs its extremes and one pass, at the speed of memory: extremes do not depend on order, so
// vectors have consecutive weights, and four blocks share the arithmetic on scales. With importance
// a block is a lane of a search. Layouts: quantize/reference/.

#include "quantize/kernels/table.hpp"

#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/legacy.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/min_search-inl.hpp"
#include "quantize/kernels/symmetric_search-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily legacy_family() {
  return {HWY_TARGET, {}};
}

#else

constexpr std::size_t k_block = 32;
constexpr std::size_t k_group = 4; ///< blocks that share the arithmetic on scales

using Four = hn::FixedTag<float, 4>;
using FourInts = hn::FixedTag<std::int32_t, 4>;
using FourV = hn::VFromD<Four>;
using FourIntV = hn::VFromD<FourInts>;

/// Of each of four blocks.
struct Extremes {
  alignas(16) float max[k_group];
  alignas(16) float min[k_group];
  alignas(16) float magnitude[k_group]; ///< not finite where any weight is not
};

struct MaxOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Max(a, b);
  }
};
struct MinOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Min(a, b);
  }
};

/// The results of Reduce over each of the four vectors, as one vector.
template <class Reduce, class D, class V>
HWY_INLINE V reduce_four(D d, V a, V b, V c, V e) {
  const Reduce reduce;
  const hn::FixedTag<std::uint64_t, 2> pairs;
  const V ab = reduce(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const V ce = reduce(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab_pairs = hn::BitCast(pairs, ab);
  const auto ce_pairs = hn::BitCast(pairs, ce);
  return reduce(hn::BitCast(d, hn::InterleaveLower(pairs, ab_pairs, ce_pairs)),
                hn::BitCast(d, hn::InterleaveUpper(pairs, ab_pairs, ce_pairs)));
}

/// Extremes of one block, still in four lanes. Magnitudes compare as integers: there a NaN is the
/// largest of all and stays.
HWY_INLINE void block_extremes(const float* x, FourV& max, FourV& min, FourIntV& magnitude) {
  const Four d;
  const FourInts di;
  const auto no_sign = hn::Set(di, 0x7FFFFFFF);
  max = min = hn::LoadU(d, x);
  magnitude = hn::And(hn::BitCast(di, max), no_sign);
  for (std::size_t i = 4; i < k_block; i += 4) {
    const FourV v = hn::LoadU(d, x + i);
    max = hn::Max(max, v);
    min = hn::Min(min, v);
    magnitude = hn::Max(magnitude, hn::And(hn::BitCast(di, v), no_sign));
  }
}

HWY_INLINE void find_extremes(const float* const* x, Extremes& out) {
  const Four d;
  const FourInts di;
  FourV max_a, max_b, max_c, max_e, min_a, min_b, min_c, min_e;
  FourIntV size_a, size_b, size_c, size_e;
  block_extremes(x[0], max_a, min_a, size_a);
  block_extremes(x[1], max_b, min_b, size_b);
  block_extremes(x[2], max_c, min_c, size_c);
  block_extremes(x[3], max_e, min_e, size_e);
  hn::Store(reduce_four<MaxOf>(d, max_a, max_b, max_c, max_e), d, out.max);
  hn::Store(reduce_four<MinOf>(d, min_a, min_b, min_c, min_e), d, out.min);
  const auto size = reduce_four<MaxOf>(di, size_a, size_b, size_c, size_e);
  hn::Store(hn::BitCast(d, size), d, out.magnitude);
}

/// Scale, its inverse and what is added before the scale is applied, for four blocks.
struct Scales {
  alignas(16) float d[k_group];
  alignas(16) float inverse[k_group];
  alignas(16) float min[k_group];
  std::uint16_t d_half[k_group];
  std::uint16_t min_half[k_group];
};

HWY_INLINE void store_halves(FourV value, std::uint16_t* to) {
  const hn::Rebind<hwy::float16_t, Four> halves;
  const hn::Rebind<std::uint16_t, Four> words;
  hn::StoreU(hn::BitCast(words, hn::DemoteTo(halves, value)), words, to);
}

HWY_INLINE void store_scales(FourV d, Scales& out) {
  const Four tag;
  const FourV zero = hn::Zero(tag);
  const auto none = hn::Eq(d, zero);
  hn::Store(d, tag, out.d);
  hn::Store(hn::IfThenElse(none, zero, hn::Div(hn::Set(tag, 1.0F), d)), tag, out.inverse);
  store_halves(d, out.d_half);
}

/// Inside these bounds inverses are finite and levels stay in their range, so that conversions to
/// integers need no care. Blocks outside go to the scalar code.
constexpr float k_least_spread = 1e-30F;
constexpr float k_largest_weight = 1e30F;

HWY_INLINE bool is_ordinary(FourV spread, FourV magnitude) {
  const Four d;
  const auto wide = hn::Or(hn::Ge(spread, hn::Set(d, k_least_spread)), hn::Eq(spread, hn::Zero(d)));
  const auto small = hn::Le(magnitude, hn::Set(d, k_largest_weight));
  return hn::AllTrue(d, hn::And(wide, small));
}

/// Value of largest magnitude, the first of equals, as the sign of the scale depends on it.
HWY_INLINE float first_largest(const float* x, float magnitude) {
  std::size_t i = 0;
  while (i + 1 < k_block && std::fabs(x[i]) != magnitude)
    ++i;
  return x[i];
}

/// Scales with the largest weight at level -Levels; no minimum.
template <int Levels>
HWY_INLINE bool symmetric_scales(const float* const* x, const Extremes& extremes, Scales& out) {
  const Four d;
  const FourV magnitude = hn::Load(d, extremes.magnitude);
  const FourV max = hn::Load(d, extremes.max);
  const FourV min = hn::Load(d, extremes.min);
  if (!is_ordinary(magnitude, magnitude)) return false;
  alignas(16) float largest[k_group];
  hn::Store(hn::IfThenElse(hn::Eq(max, magnitude), max, min), d, largest);
  const auto both = hn::And(hn::Eq(max, magnitude), hn::Eq(hn::Neg(min), magnitude));
  if (HWY_UNLIKELY(!hn::AllFalse(d, both))) {
    for (std::size_t b = 0; b < k_group; ++b) {
      const float size = extremes.magnitude[b];
      largest[b] = size == 0.0F ? 0.0F : first_largest(x[b], size);
    }
  }
  store_scales(hn::Div(hn::Load(d, largest), hn::Set(d, static_cast<float>(-Levels))), out);
  return true;
}

/// Scales with the least weight at level 0 and the largest at Top.
template <int Top>
HWY_INLINE bool min_scales(const float* const* x, const Extremes& extremes, Scales& out) {
  const Four d;
  const FourV max = hn::Load(d, extremes.max);
  FourV min = hn::Load(d, extremes.min);
  if (!is_ordinary(hn::Sub(max, min), hn::Load(d, extremes.magnitude))) return false;
  hn::Store(min, d, out.min);
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Eq(min, hn::Zero(d))))) {
    // Of zeros the first one stays, and the file has its sign.
    for (std::size_t b = 0; b < k_group; ++b) {
      const float* at = x[b];
      if (out.min[b] == 0.0F) out.min[b] = *std::find(at, at + k_block, 0.0F);
    }
    min = hn::Load(d, out.min);
  }
  store_halves(min, out.min_half);
  const FourV spread = hn::Sub(max, min);
  // Two zeros of different sign must not make a negative one.
  const FourV positive = hn::IfThenElse(hn::Eq(spread, hn::Zero(d)), hn::Zero(d), spread);
  store_scales(hn::Div(positive, hn::Set(d, static_cast<float>(Top))), out);
  return true;
}

/// Levels of a block: min(top, trunc((x - min) * inverse + half)).
HWY_INLINE void truncated_levels(const float* x, float min, float inverse, float half,
                                 std::int32_t top, std::uint8_t* levels) {
  for (std::size_t i = 0; i < k_block; i += hn::Lanes(k_f)) {
    const FloatV shifted = hn::Sub(hn::LoadU(k_f, x + i), set(min));
    const FloatV v = hn::Add(hn::Mul(shifted, set(inverse)), set(half));
    store_bytes(hn::Min(hn::ConvertTo(k_i, v), hn::Set(k_i, top)), levels + i);
  }
}

/// 32 low nibbles: weight i with weight i + 16.
HWY_INLINE void pack_nibbles(const std::uint8_t* levels, std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto low = hn::And(hn::LoadU(d, levels), hn::Set(d, 15));
  hn::StoreU(hn::Or(low, hn::ShiftLeft<4>(hn::LoadU(d, levels + 16))), d, out);
}

/// The fifth bits, weight i at bit i.
HWY_INLINE void pack_fifth_bits(const std::uint8_t* levels, std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto bit = hn::Set(d, 16);
  hn::StoreMaskBits(d, hn::TestBit(hn::LoadU(d, levels), bit), out);
  hn::StoreMaskBits(d, hn::TestBit(hn::LoadU(d, levels + 16), bit), out + 2);
}

/// What the four types differ in. Bytes: d, then the minimum, then fifth bits, then nibbles.
template <TensorType Type, bool HasMin, int Bits>
struct Legacy {
  static constexpr TensorType k_type = Type;
  static constexpr bool k_has_min = HasMin;
  static constexpr int k_top = (1 << Bits) - 1;
  static constexpr int k_levels = 1 << (Bits - 1); ///< of each sign, where there is no minimum
  static constexpr std::size_t k_fifth = HasMin ? 4 : 2;
  static constexpr std::size_t k_nibbles = k_fifth + (Bits == 5 ? 4 : 0);
  static constexpr std::size_t k_bytes = k_nibbles + 16;

  static HWY_INLINE void pack(std::uint16_t d, std::uint16_t min, const std::uint8_t* levels,
                              std::uint8_t* out) {
    std::memcpy(out, &d, 2);
    if constexpr (HasMin) std::memcpy(out + 2, &min, 2);
    if constexpr (Bits == 5) pack_fifth_bits(levels, out + k_fifth);
    pack_nibbles(levels, out + k_nibbles);
  }
};

using Q40 = Legacy<TensorType::q4_0, false, 4>;
using Q41 = Legacy<TensorType::q4_1, true, 4>;
using Q50 = Legacy<TensorType::q5_0, false, 5>;
using Q51 = Legacy<TensorType::q5_1, true, 5>;

/// Four blocks, of which `count` are written. False where one is not ordinary.
template <class Type>
HWY_INLINE bool quantize_group(const float* const* x, std::size_t count, std::uint8_t* out) {
  Extremes extremes;
  Scales scales;
  find_extremes(x, extremes);
  if constexpr (Type::k_has_min) {
    if (!min_scales<Type::k_top>(x, extremes, scales)) return false;
  } else {
    if (!symmetric_scales<Type::k_levels>(x, extremes, scales)) return false;
    std::memset(scales.min, 0, sizeof scales.min);
  }
  constexpr float k_half = Type::k_has_min ? 0.5F : static_cast<float>(Type::k_levels) + 0.5F;
  for (std::size_t b = 0; b < count; ++b) {
    alignas(64) std::uint8_t levels[k_block];
    truncated_levels(x[b], scales.min[b], scales.inverse[b], k_half, Type::k_top, levels);
    Type::pack(scales.d_half[b], scales.min_half[b], levels, out + b * Type::k_bytes);
  }
  return true;
}

struct Q80 {
  static constexpr TensorType k_type = TensorType::q8_0;
  static constexpr std::size_t k_bytes = 34;
};

/// Halves go away from zero. Adding the float below one half does it: one half itself would round
/// the float below one half up.
HWY_INLINE IntV round_away(FloatV v) {
  const FloatV half = hn::CopySign(set(0.49999997F), v);
  return hn::ConvertTo(k_i, hn::Add(v, half));
}

template <>
HWY_INLINE bool quantize_group<Q80>(const float* const* x, std::size_t count, std::uint8_t* out) {
  const Four d;
  Extremes extremes;
  Scales scales;
  find_extremes(x, extremes);
  const FourV magnitude = hn::Load(d, extremes.magnitude);
  if (!is_ordinary(magnitude, magnitude)) return false;
  store_scales(hn::Div(magnitude, hn::Set(d, 127.0F)), scales);
  const hn::Rebind<std::int8_t, Floats> signed_bytes;
  for (std::size_t b = 0; b < count; ++b) {
    std::uint8_t* const to = out + b * Q80::k_bytes;
    std::memcpy(to, &scales.d_half[b], 2);
    const FloatV inverse = set(scales.inverse[b]);
    for (std::size_t i = 0; i < k_block; i += hn::Lanes(k_f)) {
      const IntV level = round_away(hn::Mul(hn::LoadU(k_f, x[b] + i), inverse));
      hn::StoreU(hn::DemoteTo(signed_bytes, level), signed_bytes,
                 reinterpret_cast<std::int8_t*>(to + 2 + i));
    }
  }
  return true;
}

template <class Type>
void quantize_plain(const float* in, std::uint64_t blocks, std::uint8_t* out) {
  for (std::uint64_t first = 0; first < blocks; first += k_group) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(k_group, blocks - first));
    const float* x[k_group];
    for (std::size_t b = 0; b < k_group; ++b)
      x[b] = in + (first + std::min(b, count - 1)) * k_block;
    std::uint8_t* const to = out + first * Type::k_bytes;
    if (HWY_LIKELY(quantize_group<Type>(x, count, to))) continue;
    scalar_codec(Type::k_type)
        .quantize(x[0], 1, count * k_block, nullptr, reinterpret_cast<std::byte*>(to));
  }
}

// With importance --------------------------------------------------------------------------------

/// Up to sixteen rows: the mean of their squares is part of every weight.
struct Rows {
  const float* x;
  std::uint64_t count;
  std::uint64_t elements;
  const float* importance;
  float sigma2[k_batch];
  bool odd[k_batch]; ///< for the scalar code, as a whole
};

HWY_INLINE void begin_rows(Rows& rows) {
  const float* x[k_batch];
  for (std::size_t r = 0; r < k_batch; ++r) {
    x[r] = rows.x + std::min<std::uint64_t>(r, rows.count - 1) * rows.elements;
    rows.odd[r] = r < rows.count && !all_within(x[r], rows.elements, k_largest);
  }
  sums_of_squares(x, rows.elements, rows.count, rows.sigma2);
  for (float& s : rows.sigma2)
    s = s / static_cast<float>(rows.elements);
}

/// Loads the 32 blocks from `first` into lanes, weights made.
template <class Tile>
HWY_INLINE void load_tile(const Rows& rows, std::uint64_t first, Tile& tile) {
  const std::uint64_t in_row = rows.elements / k_block;
  const std::uint64_t blocks = rows.count * in_row;
  const float* x[k_tile];
  const float* importance[k_tile];
  alignas(64) float sigma2[k_tile];
  for (std::size_t lane = 0; lane < k_tile; ++lane) {
    const std::uint64_t b = std::min(first + lane, blocks - 1);
    x[lane] = rows.x + b * k_block;
    importance[lane] = rows.importance + (b % in_row) * k_block;
    sigma2[lane] = rows.sigma2[b / in_row];
  }
  transpose<k_tile>(x, k_block, tile.x);
  transpose<k_tile>(importance, k_block, tile.weight);
  for (std::size_t at = 0; at < k_tile; at += hn::Lanes(k_f)) {
    const FloatV sigma = hn::Load(k_f, sigma2 + at);
    for (std::size_t i = at; i < k_block * k_tile; i += k_tile) {
      const FloatV v = hn::Load(k_f, tile.x + i);
      const FloatV root = hn::Sqrt(hn::Add(sigma, hn::Mul(v, v)));
      hn::Store(hn::Mul(hn::Load(k_f, tile.weight + i), root), k_f, tile.weight + i);
    }
  }
}

/// Levels base + clamp(round(inverse * (x - offset))), low..high, of one block.
HWY_INLINE void searched_levels(const float* x, float inverse, float offset, std::int32_t base,
                                std::int32_t low, std::int32_t high, std::uint8_t* levels) {
  for (std::size_t i = 0; i < k_block; i += hn::Lanes(k_f)) {
    const FloatV shifted = hn::Sub(hn::LoadU(k_f, x + i), set(offset));
    const IntV level = clamp(nearest_int(hn::Mul(set(inverse), shifted)), low, high);
    store_bytes(hn::Add(level, hn::Set(k_i, base)), levels + i);
  }
}

template <class Type>
void quantize_symmetric_rows(Rows& rows, std::uint8_t* out) {
  const std::uint64_t in_row = rows.elements / k_block;
  const std::uint64_t blocks = rows.count * in_row;
  SymmetricTile<k_block> tile;
  SymmetricFound found;
  for (std::uint64_t first = 0; first < blocks; first += k_tile) {
    load_tile(rows, first, tile);
    multiply_weights<k_block>(tile);
    symmetric_search<k_block>(tile, Type::k_levels, found);
    const std::uint64_t count = std::min<std::uint64_t>(k_tile, blocks - first);
    for (std::size_t lane = 0; lane < count; ++lane) {
      const std::uint64_t b = first + lane;
      alignas(64) std::uint8_t levels[k_block];
      searched_levels(rows.x + b * k_block, found.inverse[lane], 0.0F,
                      static_cast<std::int32_t>(found.base[lane]), -Type::k_levels,
                      Type::k_levels - 1, levels);
      Type::pack(reference::f32_to_f16(found.scale[lane]), 0, levels, out + b * Type::k_bytes);
    }
  }
}

template <class Type>
void quantize_min_rows(Rows& rows, std::uint8_t* out) {
  constexpr MinSearch k_search{Type::k_top, -0.9F, 0.05F, 36, false};
  const std::uint64_t in_row = rows.elements / k_block;
  const std::uint64_t blocks = rows.count * in_row;
  MinTile<k_block> tile;
  MinFound found;
  for (std::uint64_t first = 0; first < blocks; first += k_tile) {
    load_tile(rows, first, tile);
    min_search<k_block, false>(tile, k_search, found);
    const std::uint64_t count = std::min<std::uint64_t>(k_tile, blocks - first);
    for (std::size_t lane = 0; lane < count; ++lane) {
      const std::uint64_t b = first + lane;
      if (found.unsure[lane] != 0.0F) rows.odd[b / in_row] = true;
      alignas(64) std::uint8_t levels[k_block];
      searched_levels(rows.x + b * k_block, found.inverse[lane], found.offset[lane], 0, 0,
                      Type::k_top, levels);
      Type::pack(reference::f32_to_f16(found.scale[lane]),
                 reference::f32_to_f16(-found.negative_min[lane]), levels, out + b * Type::k_bytes);
    }
  }
}

template <class Type>
void quantize_weighted(const float* in, std::uint64_t row_count, std::uint64_t row_elements,
                       const float* importance, std::uint8_t* out) {
  const std::uint64_t row_bytes = row_elements / k_block * Type::k_bytes;
  for (std::uint64_t first = 0; first < row_count; first += k_batch) {
    Rows rows{in + first * row_elements,
              std::min<std::uint64_t>(k_batch, row_count - first),
              row_elements,
              importance,
              {},
              {}};
    std::uint8_t* const to = out + first * row_bytes;
    begin_rows(rows);
    if constexpr (Type::k_has_min) {
      quantize_min_rows<Type>(rows, to);
    } else {
      quantize_symmetric_rows<Type>(rows, to);
    }
    for (std::size_t r = 0; r < rows.count; ++r) {
      if (!rows.odd[r]) continue;
      scalar_codec(Type::k_type)
          .quantize(rows.x + r * row_elements, 1, row_elements, importance,
                    reinterpret_cast<std::byte*>(to + r * row_bytes));
    }
  }
}

template <class Type>
void quantize(const float* in, std::uint64_t rows, std::uint64_t row_elements,
              const float* importance, std::byte* out) {
  auto* const to = reinterpret_cast<std::uint8_t*>(out);
  if constexpr (!std::is_same_v<Type, Q80>) {
    if (importance != nullptr) {
      quantize_weighted<Type>(in, rows, row_elements, importance, to);
      return;
    }
  }
  quantize_plain<Type>(in, rows * row_elements / k_block, to);
}

KernelFamily legacy_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::q4_0, quantize<Q40>, nullptr},
      Kernel{TensorType::q4_1, quantize<Q41>, nullptr},
      Kernel{TensorType::q5_0, quantize<Q50>, nullptr},
      Kernel{TensorType::q5_1, quantize<Q51>, nullptr},
      Kernel{TensorType::q8_0, quantize<Q80>, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(legacy_kernels, legacy_family);
} // namespace modeld::quantize
#endif
