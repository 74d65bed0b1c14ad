// SPDX-License-Identifier: Apache-2.0
#include "daemon/recipe_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace modeld::daemon {
namespace {

// "5:a;b=c": a text that may hold anything, behind its length. Takes it off the front.
std::optional<std::string> take_counted(std::string_view& rest) {
  std::size_t size = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  if (parsed.ec != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest.data()));
  if (rest.empty() || rest.front() != ':' || size > rest.size() - 1) return std::nullopt;
  std::string text(rest.substr(1, size));
  rest.remove_prefix(1 + size);
  return text;
}

std::string_view take_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(';'));
  rest.remove_prefix(word.size());
  return word;
}

// One ";key=value" into the recipe; false where it is none.
bool take_field(Recipe& recipe, std::string_view key, std::string_view& rest) {
  if (key == "tensor") {
    auto pattern = take_counted(rest);
    if (!pattern || rest.empty() || rest.front() != ':') return false;
    rest.remove_prefix(1);
    const auto type = tensor_type_from_name(take_word(rest));
    if (!type) return false;
    recipe.tensor_types.emplace_back(*std::move(pattern), *type);
    return true;
  }
  if (key == "name") {
    auto name = take_counted(rest);
    if (!name) return false;
    recipe.model_name = *std::move(name);
    return true;
  }
  const std::string_view value = take_word(rest);
  if (key == "via") {
    recipe.via = value;
  } else if (key == "pre") {
    recipe.pre = value;
  } else if (key == "output") {
    recipe.output_type = tensor_type_from_name(value);
  } else if (key == "embedding") {
    recipe.embedding_type = tensor_type_from_name(value);
  } else if (key == "pure") {
    recipe.pure = true;
  } else if (key == "leave-output") {
    recipe.leave_output_tensor = true;
  } else if (key == "keep-split") {
    recipe.keep_split = true;
  } else if (key == "force") {
    recipe.force = true;
  } else if (key == "mmproj") {
    recipe.mmproj = true;
  } else {
    return false;
  }
  return true;
}

} // namespace

Result<Recipe> recipe_from_canonical(std::string_view text) {
  std::string_view rest = text;
  Recipe recipe;
  recipe.target = take_word(rest);
  recipe.via.clear();
  bool good = true;
  while (good && !rest.empty()) {
    rest.remove_prefix(1); // ';'
    const auto equals = rest.find('=');
    if (equals == std::string_view::npos) break;
    const std::string_view key = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    good = take_field(recipe, key, rest);
  }
  if (good && recipe.canonical() == text) return recipe;
  return fail(Errc::malformed, fmt::format("reading recipe '{}': not one of ours", text));
}

} // namespace modeld::daemon
