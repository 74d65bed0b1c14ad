// SPDX-License-Identifier: Apache-2.0
#include "daemon/model_plan.hpp"

#include "daemon/weight_check.hpp"
#include "quantize/recipe/quantize_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace modeld::daemon {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

} // namespace

quantize::ConvertOptions convert_options(const Recipe& recipe) {
  quantize::ConvertOptions options;
  options.outtype = lower(recipe.via.empty() ? recipe.target : recipe.via);
  options.pre = recipe.pre;
  if (!recipe.model_name.empty()) options.model_name = recipe.model_name;
  options.force = recipe.force;
  options.mmproj = recipe.mmproj;
  return options;
}

Result<ModelPlan> plan_model(const FileSet& files, Recipe recipe) {
  if (recipe.via == "AUTO") {
    MODELD_ASSIGN(const bool f32, weights_are_f32(files));
    if (f32) recipe.via = "F32";
  }
  MODELD_ASSIGN(auto converted, quantize::convert(files, convert_options(recipe)));
  if (recipe.via.empty()) return ModelPlan{std::move(recipe), std::move(converted.model)};
  quantize::QuantizeRequest request;
  request.recipe = recipe;
  MODELD_ASSIGN(auto quantized, quantize::quantize_model(converted.model, request));
  if (quantized.parts.size() != 1) {
    return fail(Errc::internal, fmt::format("planning '{}': {} parts, expected one",
                                            recipe.canonical(), quantized.parts.size()));
  }
  return ModelPlan{std::move(recipe), std::move(quantized.parts.front())};
}

} // namespace modeld::daemon
