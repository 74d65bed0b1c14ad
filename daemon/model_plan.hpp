// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/convert.hpp"
#include "quantize/gguf/gguf_model.hpp"
#include "schema/file_set.hpp"
#include "schema/recipe.hpp"

namespace modeld::daemon {

/// A variant before it is written.
struct ModelPlan {
  Recipe recipe; ///< with `via` decided
  quantize::GgufModel model;
};

/// What a recipe asks of the converter.
quantize::ConvertOptions convert_options(const Recipe& recipe);

/// invalid_argument where the recipe's own type is of so few bits that it makes no usable model
/// without an importance matrix: a build has none to give, and nothing has to be fetched to know
/// it.
Result<void> check_unguided(const Recipe& recipe);

/// Converter and quantizer in a chain, as the recipe says; no weight is read yet. Where the recipe
/// leaves it to us what lies between them, weights of 32 bits go through F32, so that nothing is
/// lost (design section 6). The model needs `files` for as long as it lives.
Result<ModelPlan> plan_model(const FileSet& files, Recipe recipe);

} // namespace modeld::daemon
