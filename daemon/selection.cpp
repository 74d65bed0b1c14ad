// SPDX-License-Identifier: Apache-2.0
#include "daemon/selection.hpp"

#include "fetch/selection.hpp"
#include "schema/api_recipe.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace modeld::daemon {
namespace {

constexpr std::string_view k_auto = "AUTO";

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

bool has_safetensors(const std::vector<ListedFile>& files) {
  return std::any_of(files.begin(), files.end(), [](const ListedFile& file) {
    return file.path.ends_with(".safetensors") && file.path.find('/') == std::string::npos;
  });
}

Error no_such_file(const std::vector<ListedFile>& files, std::string_view path) {
  constexpr std::size_t k_shown = 10;
  std::vector<std::string> names;
  for (const ListedFile& file : files) {
    if (names.size() < k_shown) names.push_back(file.path);
  }
  if (files.size() > k_shown) names.emplace_back("...");
  return {Errc::not_found,
          fmt::format("looking for '{}': no such file", path),
          fmt::format("the {} files are: {}", files.size(), fmt::join(names, ", ")),
          {{"missing", "file"}},
          0};
}

// A path; of a split model all parts, the one that was asked for first.
Result<std::optional<Choice>> choose_path(const std::vector<ListedFile>& files,
                                          const std::string& path) {
  const auto at = std::find_if(files.begin(), files.end(),
                               [&path](const ListedFile& file) { return file.path == path; });
  if (at == files.end()) return fail(no_such_file(files, path));
  Choice choice{{*at}, file_recipe(path)};
  if (!path.ends_with(".gguf")) return std::optional(std::move(choice));
  // What is no model, such as a projector, is only itself.
  const auto model = fetch::select_gguf(files, path);
  if (!model) return std::optional(std::move(choice));
  for (const ListedFile& part : model->parts) {
    if (part.path != path) choice.parts.push_back(part);
  }
  return std::optional(std::move(choice));
}

Result<Choice> choose_tag(const std::vector<ListedFile>& files, std::string_view tag) {
  MODELD_ASSIGN(auto model, fetch::select_gguf(files, tag == k_auto ? std::string_view{} : tag));
  return Choice{std::move(model.parts), tag_recipe(tag)};
}

// The projector of the model that a tag or a path means; none where it is to be built.
Result<std::optional<Choice>> choose_projector(const std::vector<ListedFile>& files,
                                               const Selection& selection) {
  const bool is_auto = upper(selection.text) == k_auto;
  const bool buildable = has_safetensors(files) && !selection.is_file();
  if (fetch::has_gguf(files) && !selection.overridden && (!buildable || !is_auto)) {
    const auto model =
        fetch::select_gguf(files, is_auto ? std::string_view{} : std::string_view(selection.text));
    if (model && model->projector) {
      return Choice{{*model->projector}, projector_recipe(selection.text)};
    }
    if (!model && (!buildable || model.error().code == Errc::conflict)) return fail(model.error());
    if (!buildable) {
      return fail(Errc::not_found,
                  fmt::format("choosing the projector of '{}': the repository has none beside it",
                              model->parts.front().path),
                  "a projector is a GGUF file with mmproj in its name, in the folder of the model "
                  "or above it");
    }
  }
  if (!selection.recipe) return fail(selection.no_recipe);
  return std::optional<Choice>{};
}

} // namespace

bool Selection::is_file() const {
  return !recipe && text.find_first_of("./") != std::string::npos;
}

Result<Selection> parse_selection(std::string_view selector, const boost::json::object& overrides) {
  Selection selection;
  selection.text = selector.empty() ? k_auto : selector;
  const auto* mmproj = overrides.if_contains("mmproj");
  selection.mmproj = mmproj != nullptr && mmproj->is_bool() && mmproj->get_bool();
  // The projector is a matter of which file, not of how it is made.
  selection.overridden = overrides.size() > (mmproj != nullptr ? 1U : 0U);
  auto recipe = api::recipe_from_json(selection.text, overrides);
  if (recipe) {
    selection.recipe = *std::move(recipe);
    return selection;
  }
  const bool mistyped = mmproj != nullptr && !mmproj->is_bool();
  if (selection.overridden || mistyped) return fail(std::move(recipe).error());
  selection.no_recipe = std::move(recipe).error();
  return selection;
}

Result<std::optional<Choice>> choose_files(const std::vector<ListedFile>& files,
                                           const Selection& selection) {
  if (selection.mmproj) return choose_projector(files, selection);
  if (selection.is_file()) return choose_path(files, selection.text);
  const bool ready_made = fetch::has_gguf(files) && !selection.overridden;
  if (ready_made && !has_safetensors(files)) {
    MODELD_ASSIGN(auto choice, choose_tag(files, selection.text));
    return std::optional(std::move(choice));
  }
  if (ready_made && upper(selection.text) != k_auto) {
    auto choice = choose_tag(files, selection.text);
    if (choice) return std::optional(*std::move(choice));
    // Several files that fit are for the user to tell apart.
    if (choice.error().code == Errc::conflict) return fail(std::move(choice).error());
  }
  if (!selection.recipe) return fail(selection.no_recipe);
  return std::optional<Choice>{};
}

Result<std::optional<Choice>> choose_files(const Snapshot& snapshot, const Selection& selection) {
  return choose_files(snapshot.listing(), selection);
}

std::string tag_recipe(std::string_view tag) {
  return fmt::format("gguf;tag={}", upper(tag));
}

std::string file_recipe(std::string_view path) {
  return fmt::format("file;path={}", path);
}

std::string projector_recipe(std::string_view of) {
  const bool path = of.find_first_of("./") != std::string_view::npos;
  return fmt::format("mmproj;of={}", path ? std::string(of) : upper(of));
}

} // namespace modeld::daemon
