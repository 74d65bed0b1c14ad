// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace modeld::quantize::reference {

/// Rows out of a function for one block. Plain: (x, block); null for a type that is never without
/// importance. Weighted: (x, importance, block).
/// Blocks consist of bytes, so they may be written at any address.
template <class Block, void (*Plain)(const float*, Block&),
          void (*Weighted)(const float*, const float*, Block&)>
void quantize_blocks(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                     const float* importance, std::byte* out) {
  auto* block = reinterpret_cast<Block*>(out);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t at = 0; at < row_elements; at += Block::k_elements) {
      if (importance != nullptr) {
        Weighted(in + at, importance + at, *block);
      } else if constexpr (Plain != nullptr) {
        Plain(in + at, *block);
      }
      ++block;
    }
    in += row_elements;
  }
}

/// For types that ignore importance weights.
template <class Block, void (*Plain)(const float*, Block&)>
void quantize_blocks(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                     const float* /*importance*/, std::byte* out) {
  auto* block = reinterpret_cast<Block*>(out);
  for (std::uint64_t at = 0; at < rows * row_elements; at += Block::k_elements) {
    Plain(in + at, *block++);
  }
}

template <class Block, void (*Decode)(const Block&, float*)>
void dequantize_blocks(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                       float* out) {
  const auto* block = reinterpret_cast<const Block*>(in);
  for (std::uint64_t at = 0; at < rows * row_elements; at += Block::k_elements) {
    Decode(*block++, out + at);
  }
}

} // namespace modeld::quantize::reference
