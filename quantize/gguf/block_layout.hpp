// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/reference/half.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

// How each quantized block lies in memory and in GGUF: bytes only, so a block may start at any
// address, and numbers of more than one byte are little endian. x is the weight that a level q
// stands for. The layouts are ggml's (0.23.0).

namespace modeld::quantize {

/// A binary16 at any address.
struct Half {
  std::array<std::uint8_t, 2> bytes;

  float value() const {
    return reference::f16_to_f32(static_cast<std::uint16_t>(bytes[0] | (bytes[1] << 8)));
  }
  void set(float value) {
    const std::uint16_t bits = reference::f32_to_f16(value);
    bytes = {static_cast<std::uint8_t>(bits & 0xFF), static_cast<std::uint8_t>(bits >> 8)};
  }
};

/// Elements in a super-block of the K, IQ and TQ types.
inline constexpr std::size_t k_super = 256;

template <std::size_t N>
using Bytes = std::array<std::uint8_t, N>;

/// x = d * (q - 8). Byte j: elements j (low nibble) and j + 16, as in all 32-element types.
struct BlockQ4_0 {
  static constexpr std::size_t k_elements = 32;
  Half d;
  Bytes<16> qs;
};
/// x = d * q + m
struct BlockQ4_1 {
  static constexpr std::size_t k_elements = 32;
  Half d, m;
  Bytes<16> qs;
};
/// x = d * (q - 16); bit j of qh is bit 4 of element j
struct BlockQ5_0 {
  static constexpr std::size_t k_elements = 32;
  Half d;
  Bytes<4> qh;
  Bytes<16> qs;
};
/// x = d * q + m
struct BlockQ5_1 {
  static constexpr std::size_t k_elements = 32;
  Half d, m;
  Bytes<4> qh;
  Bytes<16> qs;
};
/// x = d * q
struct BlockQ8_0 {
  static constexpr std::size_t k_elements = 32;
  Half d;
  std::array<std::int8_t, 32> qs;
};

/// 16 sub-blocks of 16: x = d * low nibble of scale * q - dmin * high nibble. Levels of 2 bits:
/// byte 32 h + l has elements 128 h + l + {0, 32, 64, 96}, lowest bits first.
struct BlockQ2K {
  static constexpr std::size_t k_elements = k_super;
  Bytes<16> scales;
  Bytes<64> qs;
  Half d, dmin;
};
/// 16 sub-blocks of 16: x = d * (scale - 32) * (q - 4). qs as in Q2_K; bit k of hmask[l] is the
/// high bit of element 32 k + l. Scales of 6 bits: low nibbles of 0..7 and 8..15 in bytes 0..7,
/// high pairs of j, j + 4, j + 8, j + 12 in byte 8 + j.
struct BlockQ3K {
  static constexpr std::size_t k_elements = k_super;
  Bytes<32> hmask;
  Bytes<64> qs;
  Bytes<12> scales;
  Half d;
};
/// 8 sub-blocks of 32: x = d * scale * q - dmin * min. Scales and mins of 6 bits: of the first
/// four in bytes 0..3 and 4..7; of the last four low nibbles together in bytes 8..11, and the
/// high pairs on top of bytes 0..7. Byte 32 k + l: elements 64 k + l (low) and 64 k + 32 + l.
struct BlockQ4K {
  static constexpr std::size_t k_elements = k_super;
  Half d, dmin;
  Bytes<12> scales;
  Bytes<128> qs;
};
/// As Q4_K, with bit 2 k + (0 or 1) of qh[l] as bit 4 of elements 64 k + l and 64 k + 32 + l.
struct BlockQ5K {
  static constexpr std::size_t k_elements = k_super;
  Half d, dmin;
  Bytes<12> scales;
  Bytes<32> qh;
  Bytes<128> qs;
};
/// 16 sub-blocks of 16: x = d * scale * (q - 32). For each half of 128: ql[l] has the low nibbles
/// of l and l + 64, ql[l + 32] those of l + 32 and l + 96; qh[l] the high pairs of all four.
struct BlockQ6K {
  static constexpr std::size_t k_elements = k_super;
  Bytes<128> ql;
  Bytes<64> qh;
  std::array<std::int8_t, 16> scales;
  Half d;
};

/// x = d * value[q], 16 fixed unevenly spaced values.
struct BlockIQ4NL {
  static constexpr std::size_t k_elements = 32;
  Half d;
  Bytes<16> qs;
};
/// 8 sub-blocks of 32: x = d * (scale - 32) * value[q]. Scale: nibble of scales_l, pair of
/// scales_h.
struct BlockIQ4XS {
  static constexpr std::size_t k_elements = k_super;
  Half d;
  Bytes<2> scales_h;
  Bytes<4> scales_l;
  Bytes<128> qs;
};

// The grid types: for a group of elements the index of a point (reference/iq_grid.hpp), whose
// levels l stand for magnitudes v(l), and the signs. v: IQ2 8, 25, 43; IQ3_XXS 4, 12, 20, 28, 36,
// 44, 52, 62; IQ3_S 1, 3, ..., 15; IQ1 -1, 0, 1.

/// 8 sub-blocks of 32, 8 bytes each: 4 indices of 8 bits, then 32 bits: 4 times 7 signs (the eighth
/// makes their number even), and 4 bits of scale. x = d * (scale + 1/2) / 4 * v.
struct BlockIQ2XXS {
  static constexpr std::size_t k_elements = k_super;
  Half d;
  Bytes<64> qs;
};
/// 32 groups of 8: index of 9 bits and 7 signs in 16 bits; scales of 4 bits for 16 elements.
struct BlockIQ2XS {
  static constexpr std::size_t k_elements = k_super;
  Half d;
  Bytes<64> qs;
  Bytes<8> scales;
};
/// 32 groups of 8: low 8 bits of the index in qs, signs behind them, 2 high bits in qh.
struct BlockIQ2S {
  static constexpr std::size_t k_elements = k_super;
  Half d;
  Bytes<32> qs;
  Bytes<32> signs;
  Bytes<8> qh;
  Bytes<8> scales;
};
/// 64 groups of 4: 8 bits each; for 32 elements 32 bits as in IQ2_XXS. x = d * (scale + 1/2) / 2 *
/// v.
struct BlockIQ3XXS {
  static constexpr std::size_t k_elements = k_super;
  Half d;
  Bytes<64> qs;
  Bytes<32> scales_and_signs;
};
/// 64 groups of 4: 8 bits in qs, the ninth in qh; 8 signs for 8 elements; scales of 4 bits for 32.
/// x = d * (2 scale + 1) * v.
struct BlockIQ3S {
  static constexpr std::size_t k_elements = k_super;
  Half d;
  Bytes<64> qs;
  Bytes<8> qh;
  Bytes<32> signs;
  Bytes<4> scales;
};
/// 32 groups of 8: low 8 bits of the index in qs; for 32 elements 16 bits in qh: 4 times 3 high
/// bits, 3 bits of scale, and whether 1/8 is subtracted instead of added. x = d * (2 scale + 1) *
/// (v +- 1/8).
struct BlockIQ1S {
  static constexpr std::size_t k_elements = k_super;
  Half d;
  Bytes<32> qs;
  Bytes<16> qh;
};
/// As IQ1_S, with scale for 16 elements and shift for 8: nibbles of qh have 3 high bits and the
/// shift; each 16 bits of scales four times 3 bits, and on top 4 bits of the binary16 d.
struct BlockIQ1M {
  static constexpr std::size_t k_elements = k_super;
  Bytes<32> qs;
  Bytes<16> qh;
  Bytes<8> scales;
};

static_assert(sizeof(BlockIQ2XXS) == 66 && sizeof(BlockIQ2XS) == 74 && sizeof(BlockIQ2S) == 82);
static_assert(sizeof(BlockIQ3XXS) == 98 && sizeof(BlockIQ3S) == 110);
static_assert(sizeof(BlockIQ1S) == 50 && sizeof(BlockIQ1M) == 56);

/// x = d or -d: bit j % 8 of byte j / 8 is 1 for +.
struct BlockQ1_0 {
  static constexpr std::size_t k_elements = 128;
  Half d;
  Bytes<16> qs;
};
/// x = d * (q - 1), q of 2 bits, four to a byte, lowest first.
struct BlockQ2_0 {
  static constexpr std::size_t k_elements = 64;
  Half d;
  Bytes<16> qs;
};
/// x = d * (trit - 1). Five trits to a byte, most significant first, scaled so that the trit is the
/// high byte of 3 * byte: qs has elements m, m + 32, ... of the first 160 in bytes 0..31, of the
/// next 80 in steps of 16 in bytes 32..47; qh four each of the last 16.
struct BlockTQ1_0 {
  static constexpr std::size_t k_elements = k_super;
  Bytes<48> qs;
  Bytes<4> qh;
  Half d;
};
/// x = d * (q - 1), 2 bits: byte 32 h + m has elements 128 h + m + {0, 32, 64, 96}.
struct BlockTQ2_0 {
  static constexpr std::size_t k_elements = k_super;
  Bytes<64> qs;
  Half d;
};
/// x = 2^(e - 127) * E2M1 value. Nibbles as in Q4_0.
struct BlockMXFP4 {
  static constexpr std::size_t k_elements = 32;
  std::uint8_t e;
  Bytes<16> qs;
};
/// 4 sub-blocks of 16: x = E4M3 scale (unsigned) * E2M1 value. Byte 8 s + j: elements 16 s + j and
/// 16 s + 8 + j.
struct BlockNVFP4 {
  static constexpr std::size_t k_elements = 64;
  Bytes<4> d;
  Bytes<32> qs;
};

static_assert(sizeof(BlockQ1_0) == 18 && sizeof(BlockQ2_0) == 18 && sizeof(BlockTQ1_0) == 54);
static_assert(sizeof(BlockTQ2_0) == 66 && sizeof(BlockMXFP4) == 17 && sizeof(BlockNVFP4) == 36);
static_assert(sizeof(BlockQ4_0) == 18 && alignof(BlockQ4_0) == 1);
static_assert(sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ2K) == 84 && sizeof(BlockQ3K) == 110);
static_assert(sizeof(BlockQ4K) == 144 && sizeof(BlockQ5K) == 176 && sizeof(BlockQ6K) == 210);
static_assert(sizeof(BlockIQ4NL) == 18 && sizeof(BlockIQ4XS) == 136);

} // namespace modeld::quantize
