// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/recipe/planned_tensor.hpp"
#include "quantize/recipe/type_choice.hpp"

namespace modeld::quantize {

/// Gives each tensor that is converted its weights of the importance matrix, and notes where
/// weights would be needed and are missing. invalid_argument: the matrix does not fit the model, or
/// lacks what a type of few bits needs; malformed: a value in it is no weight. A plan alone is made
/// all the same, and shows what is missing.
Result<void> attach_importance(const GgufModel& source, const QuantizeRequest& request,
                               const TypeOptions& options, PlanOnly plan,
                               std::vector<PlannedTensor>& items,
                               std::vector<std::string>& warnings);

} // namespace modeld::quantize
