// SPDX-License-Identifier: Apache-2.0

// What the kernels of super-block types share around their searches: batches of super-blocks,
// scalar roundings, sums of squares.

#if defined(MODELD_QUANTIZE_KERNELS_BLOCKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_BLOCKS_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_BLOCKS_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_BLOCKS_INL_HPP
#endif

#include "quantize/kernels/lanes-inl.hpp"
#include "quantize/reference/half.hpp"

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

inline constexpr std::size_t k_super = 256; ///< weights in a super-block

/// Super-blocks that share a pass over their scales.
inline constexpr std::size_t k_batch = 16;

/// Below this maximum all values are taken for zero; from the reference.
inline constexpr float k_tiny_group = 1e-15F;

/// Larger weights go to the scalar code: their squares, summed, would leave the floats.
inline constexpr float k_largest = 1e18F;

/// nearest_int of one float.
HWY_INLINE std::int32_t nearest_int(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value + k_round_magic);
  return (bits & 0x007FFFFF) - 0x00400000;
}

/// Up to k_batch super-blocks, in the order of the output. Entries from `count` on repeat the last
/// one, so that every lane has weights.
struct Batch {
  std::size_t count = 0;
  const float* x[k_batch];
  const float* importance[k_batch]; ///< where there is any
  bool odd[k_batch];                ///< for the scalar code
};

/// Super-blocks [first, first + count) of the rows.
HWY_INLINE void fill_batch(Batch& batch, const float* in, const float* importance,
                           std::uint64_t row_elements, std::uint64_t first, std::size_t count) {
  const std::uint64_t in_row = row_elements / k_super;
  batch.count = count;
  for (std::size_t s = 0; s < k_batch; ++s) {
    const std::uint64_t block = first + std::min(s, count - 1);
    batch.x[s] = in + block * k_super;
    batch.importance[s] = importance == nullptr ? nullptr : importance + (block % in_row) * k_super;
    batch.odd[s] = s < count && !all_within(batch.x[s], k_super, k_largest);
  }
}

/// What is summed.
struct Square {
  template <class V>
  HWY_INLINE V operator()(V x) const {
    return hn::Mul(x, x);
  }
};
struct Magnitude {
  template <class V>
  HWY_INLINE V operator()(V x) const {
    return hn::Abs(x);
  }
};

/// Adds weights i..i+3 of four rows, each put through Term, to their sums, one after another.
template <class Term>
HWY_INLINE void add_terms(const float* const* x, std::size_t i,
                          hn::VFromD<hn::FixedTag<float, 4>>& sum) {
  const Term term;
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<std::uint64_t, 2> pairs;
  const auto a = hn::LoadU(d, x[0] + i);
  const auto b = hn::LoadU(d, x[1] + i);
  const auto c = hn::LoadU(d, x[2] + i);
  const auto e = hn::LoadU(d, x[3] + i);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  const auto first = hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low));
  const auto second = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low));
  const auto third = hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high));
  const auto fourth = hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high));
  sum = hn::Add(hn::Add(sum, term(first)), term(second));
  sum = hn::Add(hn::Add(sum, term(third)), term(fourth));
}

/// sums[s] = term(x[s][0]) + term(x[s][1]) + ..., in order, for sixteen rows of n floats. Only the
/// first `rows` of them matter: few rows cost less.
template <class Term>
HWY_NOINLINE void sums_of(const float* const* x, std::uint64_t n, std::size_t rows, float* sums) {
  const hn::FixedTag<float, 4> d;
  auto first = hn::Zero(d), second = first, third = first, fourth = first;
  if (rows <= 4) {
    for (std::size_t i = 0; i < n; i += 4)
      add_terms<Term>(x, i, first);
  } else {
    for (std::size_t i = 0; i < n; i += 4) {
      add_terms<Term>(x, i, first);
      add_terms<Term>(x + 4, i, second);
      add_terms<Term>(x + 8, i, third);
      add_terms<Term>(x + 12, i, fourth);
    }
  }
  hn::StoreU(first, d, sums);
  hn::StoreU(second, d, sums + 4);
  hn::StoreU(third, d, sums + 8);
  hn::StoreU(fourth, d, sums + 12);
}

HWY_INLINE void sums_of_squares(const float* const* x, std::uint64_t n, std::size_t rows,
                                float* sums) {
  sums_of<Square>(x, n, rows, sums);
}

/// The largest magnitude of n weights, n a multiple of 16; not finite where any weight is not:
/// magnitudes compare as integers, where a NaN is the largest of all and stays.
HWY_INLINE float largest_magnitude(const float* x, std::size_t n) {
  const IntV no_sign = hn::Set(k_i, 0x7FFFFFFF);
  IntV largest = hn::Zero(k_i);
  for (std::size_t i = 0; i < n; i += hn::Lanes(k_f)) {
    largest = hn::Max(largest, hn::And(hn::BitCast(k_i, hn::LoadU(k_f, x + i)), no_sign));
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(k_i, largest)));
}

/// The levels of one sub-block whose scale is not zero: clamp(round((x + low) / scale)).
HWY_INLINE void levels_of(const float* x, std::size_t n, float scale, float low,
                          std::int32_t bottom, std::int32_t top, std::uint8_t* levels) {
  const FloatV divisor = set(scale);
  const FloatV shift = set(low);
  for (std::size_t i = 0; i < n; i += hn::Lanes(k_f)) {
    const FloatV v = hn::Div(hn::Add(hn::LoadU(k_f, x + i), shift), divisor);
    const IntV level = clamp(nearest_int(v), bottom, top);
    store_bytes(hn::Sub(level, hn::Set(k_i, bottom)), levels + i);
  }
}

/// to[i] = levels[i] | levels[32 + i] << 2 | levels[64 + i] << 4 | levels[96 + i] << 6, i < 32.
HWY_INLINE void pack_quarters(const std::uint8_t* levels, std::uint8_t* to) {
  const hn::FixedTag<std::uint8_t, 16> d;
  for (std::size_t i = 0; i < 32; i += 16) {
    const auto low =
        hn::Or(hn::LoadU(d, levels + i), hn::ShiftLeft<2>(hn::LoadU(d, levels + 32 + i)));
    const auto high = hn::Or(hn::ShiftLeft<4>(hn::LoadU(d, levels + 64 + i)),
                             hn::ShiftLeft<6>(hn::LoadU(d, levels + 96 + i)));
    hn::StoreU(hn::Or(low, high), d, to + i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
