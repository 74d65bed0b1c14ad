// SPDX-License-Identifier: Apache-2.0
#include "daemon/recipe_options.hpp"

#include "daemon/repeated_option.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

namespace modeld::daemon {

void add_recipe_options(CLI::App& command, RecipeOptions& options) {
  command.add_option("--output-tensor-type", options.output_type, "Type of the output tensor");
  command.add_option("--token-embedding-type", options.embedding_type,
                     "Type of the token embeddings");
  repeated(command.add_option(
      "--tensor-type", options.tensor_types,
      "PATTERN=TYPE for the tensors whose name matches; the first that matches wins"));
  command.add_flag("--pure", options.pure, "One type for all tensors");
  command.add_flag("--leave-output-tensor", options.leave_output_tensor,
                   "Leave the output tensor as it is");
  command.add_flag("--force", options.force,
                   "Write the reference's file also where it is known to be wrong");
  command.add_flag("--mmproj", options.mmproj,
                   "The projector of a multimodal model, in the place of the model");
  command.add_option("--pre", options.pre, "Pre-tokenizer label, where it is not recognised");
  command.add_option("--model-name", options.model_name, "general.name");
}

boost::json::object to_json(const RecipeOptions& options) {
  boost::json::object out;
  const auto add_text = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  const auto add_flag = [&out](std::string_view name, bool value) {
    if (value) out[name] = true;
  };
  add_text("output_type", options.output_type);
  add_text("embedding_type", options.embedding_type);
  if (!options.tensor_types.empty()) {
    boost::json::array patterns;
    for (const std::string& pattern : options.tensor_types) {
      patterns.emplace_back(pattern);
    }
    out["tensor_types"] = std::move(patterns);
  }
  add_flag("pure", options.pure);
  add_flag("leave_output_tensor", options.leave_output_tensor);
  add_flag("force", options.force);
  add_flag("mmproj", options.mmproj);
  add_text("pre", options.pre);
  add_text("model_name", options.model_name);
  return out;
}

} // namespace modeld::daemon
