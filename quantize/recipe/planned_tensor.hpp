// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/recipe/quantize_model.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace modeld::quantize {

/// One tensor on its way from the source to the output.
struct PlannedTensor {
  std::size_t index; ///< in the source
  std::string name;  ///< in the output
  TensorDecision decision;
  std::shared_ptr<const std::vector<float>> importance;

  bool converts() const { return decision.from != decision.to; }
};

} // namespace modeld::quantize
