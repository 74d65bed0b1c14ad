// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "quantize/recipe/imatrix.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// What the quantizer writes into the metadata of its output, in the order of the reference's.

namespace modeld::quantize {

/// The file type that the reference assumes where a file does not say: by the tensor type that
/// first reaches the highest count, in the quantizer's order.
std::uint32_t guess_file_type(const GgufModel& model, const std::vector<std::size_t>& order);

struct MetadataFacts {
  std::uint32_t file_type = 0;
  const Importance* importance = nullptr;   ///< where some was given
  std::span<const GgufKv> overrides;        ///< keys that the user sets
  std::optional<std::uint32_t> layers_left; ///< where layers were left out
};

/// The source's metadata with what the quantizer changes, for the first or only part.
void write_metadata(GgufModel& model, const GgufModel& source, const MetadataFacts& facts);

/// Numbers the parts of a split, where there are several; `tensors` is the sum over them.
void write_split_keys(std::vector<GgufModel>& parts, std::size_t tensors);

} // namespace modeld::quantize
