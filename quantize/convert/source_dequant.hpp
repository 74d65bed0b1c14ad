// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"

#include <cstdint>
#include <optional>
#include <vector>

// Weights that a checkpoint holds in a quantized form of its own, as single precision again: the
// arithmetic and its order are the reference's. Each function checks shapes against each other
// first; an error names what does not fit, the caller names the tensor.

namespace modeld::quantize {

/// weight * scale; the scale is repeated in blocks along its last dimensions (clipped at the edge)
/// and broadcast along the others. Reading an FP8 code that is no number fails (failure case A09).
Result<SourcePtr> scaled_weight(SourcePtr weight, SourcePtr scale,
                                const std::vector<std::uint64_t>& block);

/// BitNet: four ternary weights in a byte, the quarters of the rows; divided by the scale.
Result<SourcePtr> bitnet_weight(SourcePtr packed, SourcePtr scale);

struct GptqParts {
  SourcePtr qweight; ///< I32 [inputs / pack, outputs]
  SourcePtr qzeros;  ///< I32 [groups, outputs / pack]
  SourcePtr scales;  ///< [groups, outputs]
  SourcePtr g_idx;   ///< group of each input
};
/// GPTQ of 2, 4 or 8 bits: [outputs, inputs]. `zero_shift` is 1 for the first format of GPTQ, whose
/// zero points are stored less one.
Result<SourcePtr> gptq_weight(const GptqParts& parts, std::int64_t bits, std::int64_t zero_shift);

struct PackedParts {
  SourcePtr packed;     ///< I32 [rows, words]
  SourcePtr scale;      ///< [rows, groups]
  SourcePtr shape;      ///< rows, columns
  SourcePtr zero_point; ///< I32, packed along the rows; may be null
};
/// compressed-tensors "pack-quantized".
Result<SourcePtr> packed_weight(const PackedParts& parts, std::int64_t bits,
                                std::int64_t group_size);

/// NVFP4: U8 [rows, columns / 2] and F8_E4M3 [rows, columns / 16] as GGUF NVFP4 blocks, no bit
/// lost.
Result<SourcePtr> nvfp4_blocks(SourcePtr weight, SourcePtr scale);
/// MXFP4: U8 [.., columns / 2] and exponents [.., columns / 32] as GGUF MXFP4 blocks.
Result<SourcePtr> mxfp4_blocks(SourcePtr weight, SourcePtr scale);

} // namespace modeld::quantize
