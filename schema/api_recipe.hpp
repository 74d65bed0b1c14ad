// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/recipe.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

namespace modeld::api {

/// RecipeOverrides of the contract: only what differs from the target's plain recipe.
boost::json::object recipe_to_json(const Recipe& recipe);

/// A target's recipe with overrides. invalid_argument names the member, the value and what it may
/// be; a member that we do not know is refused, since it would change the bytes.
Result<Recipe> recipe_from_json(std::string_view target, const boost::json::object& overrides);

} // namespace modeld::api
