// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/weights.hpp"

#include <string_view>

namespace modeld::quantize {

/// How the checkpoint's own quantization shows in the output.
struct SourceQuantization {
  bool nvfp4 = false;    ///< blocks were kept as NVFP4
  bool mxfp4 = false;    ///< blocks were kept as MXFP4
  bool declared = false; ///< the configuration names a method
};

/// Replaces weights that the checkpoint holds in a quantized form: FP8 (quant_method fp8,
/// compressed-tensors, modelopt), GPTQ, BitNet and packed integers by their values, NVFP4 and MXFP4
/// by blocks of GGUF. Scales and zero points go away.
///
/// unsupported: a method or format that the reference does not read either, by name (failure case
/// A10); malformed: a part of a quantized weight is missing or does not fit; `force` lets FP8
/// weights without a scale pass as they are.
Result<SourceQuantization> dequantize_weights(Weights& weights, const ModelConfig& config,
                                              const FileSet& files, bool force);

} // namespace modeld::quantize
