// SPDX-License-Identifier: Apache-2.0
#include "daemon/model_plan.hpp"

#include "daemon/weight_check.hpp"
#include "quantize/recipe/quantize_model.hpp"
#include "quantize/recipe/type_choice.hpp"

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

Result<void> check_unguided(const Recipe& recipe) {
  constexpr std::string_view k_usual = "blk.0.ffn_up.weight"; // a tensor like most
  const TargetInfo* target = find_target(recipe.target);
  if (target == nullptr || recipe.via.empty() ||
      !quantize::needs_importance(k_usual, target->default_type,
                                  static_cast<quantize::FileType>(target->file_type))) {
    return {};
  }
  return fail(Errc::invalid_argument,
              fmt::format("choosing {}: it makes no usable model without an importance matrix",
                          recipe.target),
              "take a type with more bits, or give a matrix to modelctl quantize --imatrix");
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
