// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/recipe.hpp"
#include "schema/result.hpp"
#include "schema/snapshot.hpp"

#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the selector of a ref means (design section 1): a recipe that is built from the weights, a
// model file that the repository holds ready made in GGUF, or any other file of it. Only a listing
// can tell which.

namespace modeld::daemon {

struct Selection {
  std::string text; ///< as it was asked for; "AUTO" where nothing was
  std::optional<Recipe> recipe;
  Error no_recipe;         ///< why there is none
  bool overridden = false; ///< the recipe was changed by hand: only a build can be meant
  bool mmproj = false;     ///< the projector of what is named, not the model

  /// Looks like a path: nothing else has a dot or a slash.
  bool is_file() const;
};

/// invalid_argument for overrides that make no sense. A text that is no recipe may still be a tag
/// or a file of the repository.
Result<Selection> parse_selection(std::string_view selector, const boost::json::object& overrides);

/// Files of the repository that are meant.
struct Choice {
  std::vector<ListedFile> parts; ///< a file, or all parts of a split model; what is asked for first
  std::string recipe;            ///< under which the first one is kept, see below
};

/// What of a listing is meant; nothing where the recipe is to be built from its weights. A ready
/// made model wins over a build where the selector names it, and where there are no weights to
/// build from; so does the projector that belongs to such a model. not_found lists what there is;
/// invalid_argument where the text is nothing at all.
Result<std::optional<Choice>> choose_files(const std::vector<ListedFile>& files,
                                           const Selection& selection);
Result<std::optional<Choice>> choose_files(const Snapshot& snapshot, const Selection& selection);

/// Recipes of files that are kept without their whole snapshot: "gguf;tag=Q4_K_M" for what a tag
/// chose, "file;path=a/b.gguf" for what a path did, "mmproj;of=Q4_K_M" for the projector that
/// belongs to what a tag or a path chose.
std::string tag_recipe(std::string_view tag);
std::string file_recipe(std::string_view path);
std::string projector_recipe(std::string_view of);

} // namespace modeld::daemon
