// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/recipe.hpp"

#include <string_view>

namespace modeld::daemon {

/// The recipe of a canonical text (Recipe::canonical). malformed where that is not what it would
/// write again.
Result<Recipe> recipe_from_canonical(std::string_view text);

} // namespace modeld::daemon
