// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace modeld::daemon {

/// Options that change a recipe, under the names of the reference's tools.
struct RecipeOptions {
  std::string output_type;
  std::string embedding_type;
  std::vector<std::string> tensor_types;
  bool pure = false;
  bool leave_output_tensor = false;
  bool force = false;
  bool mmproj = false;
  std::string pre;
  std::string model_name;
};

void add_recipe_options(CLI::App& command, RecipeOptions& options);

/// RecipeOverrides of the contract; what was not given is left out.
boost::json::object to_json(const RecipeOptions& options);

} // namespace modeld::daemon
