// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/tensor_type.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// Where each block type keeps its scales (validation.md 3, BD-01), once for the scan of a file and
// for the quantizer, which looks at every block that it reads or makes.

namespace modeld::validate {

/// A binary16 number in a block.
struct HalfField {
  std::uint16_t offset = 0;
  std::string_view name;
};

/// The binary16 scales and minima of one type.
struct HalfFields {
  TensorType type;
  std::uint8_t count = 0;
  std::array<HalfField, 2> fields;
};

/// Null for types whose blocks have no such field at a fixed place.
const HalfFields* half_fields(TensorType type);

/// The scale of an IQ1_M block, which lies in the top nibbles of four words: binary16 bits.
std::uint16_t iq1_m_scale(const std::byte* block);

/// Infinite or NaN, by its exponent (BD-04).
constexpr bool is_bad_half(std::uint16_t bits) {
  return (bits & 0x7C00U) == 0x7C00U;
}

/// The first block of which a scale, or for plain types the value, is infinite or NaN (BD-01,
/// BD-02); for MXFP4 whose exponent is 255. Nothing where all are sound. Whole blocks, little
/// endian. Any thread.
std::optional<std::uint64_t> first_bad_block(TensorType type, std::span<const std::byte> blocks);

} // namespace modeld::validate
