// SPDX-License-Identifier: Apache-2.0
#include "schema/api_recipe.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::api {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::size_t k_max_patterns = 1000;
constexpr std::size_t k_max_text = 1000;

tl::unexpected<Error> bad(std::string_view name, std::string_view allowed) {
  return fail(Errc::invalid_argument,
              fmt::format("reading member 'recipe.{}': allowed is {}", name, allowed));
}

Result<void> read(bool& out, std::string_view name, const value& from) {
  if (!from.is_bool()) return bad(name, "true or false");
  out = from.get_bool();
  return {};
}

Result<void> read(std::string& out, std::string_view name, const value& from) {
  if (!from.is_string() || from.get_string().size() > k_max_text) {
    return bad(name, "text of at most 1000 bytes");
  }
  out = from.get_string();
  return {};
}

Result<TensorType> type_of(std::string_view name, std::string_view text) {
  if (const auto type = tensor_type_from_name(text)) return *type;
  return fail(Errc::invalid_argument,
              fmt::format("reading member 'recipe.{}': '{}' is no tensor type", name, text),
              "types are written as in Q4_K, F16, BF16");
}

Result<void> read(std::optional<TensorType>& out, std::string_view name, const value& from) {
  if (!from.is_string()) return bad(name, "the name of a tensor type");
  MODELD_ASSIGN(out, type_of(name, std::string_view(from.get_string())));
  return {};
}

Result<void> read_patterns(Recipe& recipe, const value& from) {
  constexpr std::string_view k_name = "tensor_types";
  if (!from.is_array() || from.get_array().size() > k_max_patterns) {
    return bad(k_name, "at most 1000 texts 'pattern=type'");
  }
  for (const value& item : from.get_array()) {
    const std::string_view text =
        item.is_string() ? std::string_view(item.get_string()) : std::string_view{};
    const auto equal = text.rfind('=');
    if (equal == std::string_view::npos || equal == 0 || text.size() > k_max_text) {
      return bad(k_name, "texts 'pattern=type'");
    }
    MODELD_ASSIGN(const TensorType type, type_of(k_name, text.substr(equal + 1)));
    recipe.tensor_types.emplace_back(text.substr(0, equal), type);
  }
  return {};
}

Result<void> read_member(Recipe& recipe, std::string_view name, const value& from) {
  if (name == "output_type") return read(recipe.output_type, name, from);
  if (name == "embedding_type") return read(recipe.embedding_type, name, from);
  if (name == "tensor_types") return read_patterns(recipe, from);
  if (name == "pure") return read(recipe.pure, name, from);
  if (name == "leave_output_tensor") return read(recipe.leave_output_tensor, name, from);
  if (name == "force") return read(recipe.force, name, from);
  if (name == "mmproj") return read(recipe.mmproj, name, from);
  if (name == "pre") return read(recipe.pre, name, from);
  if (name == "model_name") return read(recipe.model_name, name, from);
  return fail(Errc::invalid_argument,
              fmt::format("reading member 'recipe.{}': there is no such member; known are "
                          "output_type, embedding_type, tensor_types, pure, leave_output_tensor, "
                          "force, mmproj, pre and model_name",
                          name));
}

} // namespace

object recipe_to_json(const Recipe& recipe) {
  object out;
  if (recipe.output_type) out["output_type"] = info(*recipe.output_type).name;
  if (recipe.embedding_type) out["embedding_type"] = info(*recipe.embedding_type).name;
  if (!recipe.tensor_types.empty()) {
    boost::json::array patterns;
    for (const auto& [pattern, type] : recipe.tensor_types) {
      patterns.emplace_back(fmt::format("{}={}", pattern, info(type).name));
    }
    out["tensor_types"] = std::move(patterns);
  }
  if (recipe.pure) out["pure"] = true;
  if (recipe.leave_output_tensor) out["leave_output_tensor"] = true;
  if (recipe.force) out["force"] = true;
  if (recipe.mmproj) out["mmproj"] = true;
  if (!recipe.pre.empty()) out["pre"] = recipe.pre;
  if (!recipe.model_name.empty()) out["model_name"] = recipe.model_name;
  return out;
}

Result<Recipe> recipe_from_json(std::string_view target, const object& overrides) {
  MODELD_ASSIGN(Recipe recipe, Recipe::parse_target(target));
  for (const auto& [name, from] : overrides) {
    MODELD_TRY(read_member(recipe, name, from));
  }
  return recipe;
}

} // namespace modeld::api
