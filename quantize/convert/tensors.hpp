// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/config.hpp"
#include "quantize/convert/tensor_plan.hpp"
#include "quantize/convert/weights.hpp"

namespace modeld::quantize {

/// Every output tensor, in the reference's order. unsupported: source tensors that no rule takes
/// (all of them are listed), an operation that does not fit a shape; malformed: experts that are
/// missing.
Result<TensorPlan> plan_tensors(const Weights& weights, const ModelConfig& config,
                                const FileSet& files, const OutputType& file_type,
                                const PlanOptions& options);

} // namespace modeld::quantize
