// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/quantization_settings.hpp"
#include "quantize/convert/quantized_weights.hpp"

// Weights in the forms of compressed-tensors.

namespace modeld::quantize {

/// Packed names of NVFP4 become those of ModelOpt; global scales are reciprocals.
Result<void> rename_compressed(QuantizedWeights& weights);

/// Scaled and packed weights become values. unsupported: a format, strategy or number of groups
/// that the reference does not read either, by name.
Result<void> dequantize_compressed(QuantizedWeights& weights, const QuantizationSettings& settings);

} // namespace modeld::quantize
