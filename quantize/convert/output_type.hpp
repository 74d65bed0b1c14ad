// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"
#include "quantize/convert/weights.hpp"
#include "schema/tensor_type.hpp"

#include <cstdint>
#include <string>
#include <string_view>

// The type that each output tensor has.

namespace modeld::quantize {

/// What a conversion makes of tensors that no rule gives a type of its own.
struct OutputType {
  TensorType tensors = TensorType::f16;
  std::uint32_t number = 1; ///< general.file_type
  std::string_view name;    ///< "F16"
};

/// By the name of --outtype; "auto" looks at the first tensor of rank 2 or more that is BF16 or
/// F16, and takes F16 where there is none.
Result<OutputType> choose_file_type(std::string_view outtype, const Weights& weights);

/// The type, or F16 where a row is no whole number of its blocks.
TensorType fitting(TensorType type, const Shape& shape);

/// By the output's name and shape; `wanted` is what its rule says: "f32", "f16", "file" (that of
/// the file in any case) or nothing.
TensorType choose_type(const std::string& name, const Shape& shape, const std::string& wanted,
                       const OutputType& file);

} // namespace modeld::quantize
