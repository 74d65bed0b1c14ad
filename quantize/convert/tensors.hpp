// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/config.hpp"
#include "quantize/convert/transform_encode.hpp"
#include "quantize/convert/weights.hpp"
#include "quantize/gguf/gguf_model.hpp"
#include "quantize/metadata/metadata.hpp"

#include <vector>

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

struct PlanOptions {
  Overflow overflow = Overflow::refuse;
  bool fp8_as_q8 = false;    ///< what was FP8 becomes Q8_0
  bool fuse_gate_up = false; ///< stacked gate and up experts in one tensor
  bool adapter = false;      ///< the tensors are changes that an adapter makes
};

struct TensorPlan {
  std::vector<GgufTensor> tensors;
  ParameterCount parameters;
};

/// Every output tensor, in the reference's order. unsupported: source tensors that no rule takes
/// (all of them are listed), an operation that does not fit a shape; malformed: experts that are
/// missing.
Result<TensorPlan> plan_tensors(const Weights& weights, const ModelConfig& config,
                                const FileSet& files, const OutputType& file_type,
                                const PlanOptions& options);

} // namespace modeld::quantize
