// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "schema/recipe.hpp"

namespace modeld::daemon {

/// What a selector asks for: a recipe, or a file of the repository.
struct Selection {
  Recipe recipe;
  std::string file; ///< empty: the recipe
};

/// A name of a recipe, or what looks like a path; nothing means AUTO. invalid_argument lists the
/// recipes for what is neither.
Result<Selection> parse_selector(std::string_view selector, const boost::json::object& overrides);

/// The request for what a ref selects, where it is not here yet.
JobRequest variant_request(const ModelRef& ref, const boost::json::object& overrides,
                           std::uint32_t uid, fetch::Token token);

/// What is here already; one look-up in the index.
Result<std::optional<api::Variant>> find_selected(store::Store& store, const Snapshot& snapshot,
                                                  const Selection& selection);

/// Pulls what is missing, converts, quantizes, publishes. Result: VariantAnswer.
Result<boost::json::object> run_variant(Services& services, Job& job);

} // namespace modeld::daemon
