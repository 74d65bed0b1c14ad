// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace modeld::quantize {

/// What the choice of types depends on besides names and shapes.
struct ModelFacts {
  std::string architecture;
  int layers = 0; ///< all blocks, with those for multi-token prediction
  int experts = 0;
  int heads = 0; ///< of the first layer
  int kv_heads = 0;
  bool is_70b = false; ///< what the reference takes for a 70B model: 8 heads share one V

  /// Query heads for each key-value head in the first layer.
  int grouping() const { return kv_heads == 0 ? 0 : heads / kv_heads; }
};

/// From the metadata; integer overrides come first, as the reference's loader has it. malformed
/// where a key that every language model has is missing.
Result<ModelFacts> model_facts(const GgufModel& model, std::span<const GgufKv> overrides);

} // namespace modeld::quantize
