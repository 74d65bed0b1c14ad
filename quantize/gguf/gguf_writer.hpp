// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace modeld::quantize {

/// Where everything of a GGUF file stands, known before a weight is read.
struct GgufLayout {
  std::vector<std::byte> header;      ///< from the magic to the first byte of tensor data
  std::vector<std::uint64_t> offsets; ///< of each tensor in the file, in bytes from its start
  std::uint64_t file_size = 0;        ///< padding after the last tensor included
};

/// Lays out a GGUF version 3 file as the reference's writer does: metadata and tensors in the order
/// of the model, data aligned to model.alignment, every tensor padded with zeros.
///
/// invalid_argument: a key or tensor name that stands twice, a tensor name of 64 bytes or more (no
/// runtime loads those), an empty array, more than four dimensions, an alignment that is no power
/// of two. The message names the key or tensor.
Result<GgufLayout> lay_out_gguf(const GgufModel& model);

/// Exact size of the file in bytes.
Result<std::uint64_t> gguf_file_size(const GgufModel& model);

/// Whether the reference swaps a tensor's bytes in a big-endian file: plain numbers are swapped,
/// BF16 and quantized blocks are left as they are.
bool swapped_in_big_endian(TensorType type);

} // namespace modeld::quantize
