// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "quantize/recipe/importance.hpp"
#include "schema/recipe.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace modeld::quantize {

struct QuantizeRequest {
  /// Target, types by hand, pure, leave_output_tensor, keep_split, force. `via`, `pre` and
  /// `model_name` belong to the conversion before.
  Recipe recipe;
  bool only_copy = false; ///< the target COPY: sorts, drops split keys, changes no tensor
  bool allow_requantize = false;
  std::shared_ptr<const Importance> importance; ///< null: none
  std::vector<GgufKv> overrides;                ///< in order; see kv_override.hpp
  std::vector<int> prune_layers;                ///< layers to leave out
  /// With keep_split: the part of the source that each of its tensors lies in, ascending in file
  /// order. Empty: all in one.
  std::vector<std::uint16_t> parts;
};

/// What was decided about one tensor, in the order of the output.
struct TensorDecision {
  std::string name;
  TensorType from;
  TensorType to;
  TensorType wanted;         ///< differs from `to` where the row length forced a substitute
  bool weighted = false;     ///< importance weights were found for it
  bool unguided_low = false; ///< dry run: would be refused without importance weights
  std::uint64_t bytes_from = 0;
  std::uint64_t bytes_to = 0;
};

struct QuantizedModel {
  std::vector<GgufModel> parts; ///< one, or with keep_split as many as the source
  std::vector<TensorDecision> decisions;
  std::vector<std::string> warnings;
};

enum class PlanOnly { no, yes };

/// The model that llama-quantize (v0.4.0) would write: metadata with quantization_version and
/// file_type behind the source's keys, tensors by layer and name, types by the recipe. No weight
/// is read; the new sources quantize on demand, and are the same bytes on any number of threads.
///
/// Everything that can be told beforehand is told here: unknown or impossible types, a row length
/// without a substitute, a rule that matches no tensor, source tensors that are already quantized
/// (unless allowed), importance weights of the wrong length or missing where a type needs them, all
/// such tensors at once. PlanOnly::yes (--dry-run) lets missing importance and requantization pass.
Result<QuantizedModel> quantize_model(const GgufModel& source, const QuantizeRequest& request,
                                      PlanOnly plan = PlanOnly::no);

} // namespace modeld::quantize
