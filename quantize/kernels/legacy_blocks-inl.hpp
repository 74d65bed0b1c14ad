// SPDX-License-Identifier: Apache-2.0

// What Q4_0, Q4_1, Q5_0 and Q5_1 differ in, and how their blocks are packed.

#if defined(MODELD_QUANTIZE_KERNELS_LEGACY_BLOCKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MODELD_QUANTIZE_KERNELS_LEGACY_BLOCKS_INL_HPP
#undef MODELD_QUANTIZE_KERNELS_LEGACY_BLOCKS_INL_HPP
#else
#define MODELD_QUANTIZE_KERNELS_LEGACY_BLOCKS_INL_HPP
#endif

#include "quantize/kernels/blocks-inl.hpp"

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {

inline constexpr std::size_t k_block = 32; ///< weights in a block

/// Bytes of a block: d, then the minimum, then fifth bits, then nibbles.
template <TensorType Type, bool HasMin, int Bits>
struct Legacy {
  static constexpr TensorType k_type = Type;
  static constexpr bool k_has_min = HasMin;
  static constexpr bool k_has_fifth = Bits == 5;
  static constexpr int k_top = (1 << Bits) - 1;
  static constexpr int k_levels = 1 << (Bits - 1); ///< of each sign, where there is no minimum
  static constexpr std::size_t k_fifth = HasMin ? 4 : 2;
  static constexpr std::size_t k_nibbles = k_fifth + (Bits == 5 ? 4 : 0);
  static constexpr std::size_t k_bytes = k_nibbles + 16;
};

using Q40 = Legacy<TensorType::q4_0, false, 4>;
using Q41 = Legacy<TensorType::q4_1, true, 4>;
using Q50 = Legacy<TensorType::q5_0, false, 5>;
using Q51 = Legacy<TensorType::q5_1, true, 5>;

/// Bit 4 of each lane to bit `at`, `at + 1`, ... of `out`; `at` is a multiple of the lanes.
HWY_INLINE void store_fifth_bits(IntV levels, std::size_t at, std::uint8_t* out) {
  std::uint8_t bits[8]; // StoreMaskBits may write more than it has bits for
  hn::StoreMaskBits(k_i, hn::TestBit(levels, hn::Set(k_i, 16)), bits);
  if (hn::Lanes(k_i) >= 8) {
    std::memcpy(out + at / 8, bits, hn::Lanes(k_i) / 8);
  } else {
    const unsigned kept = at % 8 == 0 ? 0U : out[at / 8];
    out[at / 8] = static_cast<std::uint8_t>(kept | static_cast<unsigned>(bits[0]) << (at % 8));
  }
}

/// Writes a block. `level(i)` gives the levels of weights i, i + 1, ... in the low bits of lanes;
/// bits from 8 on may be anything.
template <class Type, class Level>
HWY_INLINE void pack_block(std::uint16_t d, std::uint16_t min, const Level& level,
                           std::uint8_t* out) {
  std::memcpy(out, &d, 2);
  if constexpr (Type::k_has_min) std::memcpy(out + 2, &min, 2);
  for (std::size_t i = 0; i < k_block / 2; i += hn::Lanes(k_i)) {
    const IntV low = level(i); // shares its bytes with the weight 16 on
    const IntV high = level(i + k_block / 2);
    const IntV both = hn::OrAnd(hn::ShiftLeft<4>(high), low, hn::Set(k_i, 15));
    store_bytes(both, out + Type::k_nibbles + i);
    if constexpr (Type::k_has_fifth) {
      store_fifth_bits(low, i, out + Type::k_fifth);
      store_fifth_bits(high, i, out + Type::k_fifth + 2);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
