// SPDX-License-Identifier: Apache-2.0

// Q4_0, Q4_1, Q5_0 and Q5_1 with importance: a block is a lane of a search.

#if defined(MODELD_QUANTIZE_KERNELS_LEGACY_IMPORTANCE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_LEGACY_IMPORTANCE_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_LEGACY_IMPORTANCE_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_LEGACY_IMPORTANCE_INL_HPP
#endif

#include "quantize/kernels/legacy_blocks-inl.hpp"
#include "quantize/kernels/min_search-inl.hpp"
#include "quantize/kernels/symmetric_search-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

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

/// Levels base + clamp(round(inverse * (x - offset))), low..high.
HWY_INLINE IntV searched_level(const float* x, FloatV inverse, FloatV offset, std::int32_t base,
                               std::int32_t low, std::int32_t high) {
  const FloatV shifted = hn::Sub(hn::LoadU(k_f, x), offset);
  const IntV level = clamp(nearest_int(hn::Mul(inverse, shifted)), low, high);
  return hn::Add(level, hn::Set(k_i, base));
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
      const float* const x = rows.x + b * k_block;
      const auto base = static_cast<std::int32_t>(found.base[lane]);
      const FloatV inverse = set(found.inverse[lane]);
      const FloatV none = hn::Zero(k_f);
      const auto level = [&](std::size_t i) HWY_ATTR {
        return searched_level(x + i, inverse, none, base, -Type::k_levels, Type::k_levels - 1);
      };
      pack_block<Type>(reference::f32_to_f16(found.scale[lane]), 0, level, out + b * Type::k_bytes);
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
      const float* const x = rows.x + b * k_block;
      const FloatV inverse = set(found.inverse[lane]);
      const FloatV offset = set(found.offset[lane]);
      const auto level = [&](std::size_t i) HWY_ATTR {
        return searched_level(x + i, inverse, offset, 0, 0, Type::k_top);
      };
      pack_block<Type>(reference::f32_to_f16(found.scale[lane]),
                       reference::f32_to_f16(-found.negative_min[lane]), level,
                       out + b * Type::k_bytes);
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

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
