// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/catalog.hpp"
#include "daemon/selection.hpp"
#include "daemon/services.hpp"

namespace modeld::daemon {

/// The request for what a ref selects, where it is not here yet.
JobRequest variant_request(const ModelRef& ref, const boost::json::object& overrides,
                           std::uint32_t uid, fetch::Token token);

/// What is here already: look-ups in the index. Errors where what is here shows that there can be
/// no such thing.
Result<std::optional<api::Variant>> find_selected(store::Store& store, const Place& place,
                                                  const Selection& selection);

/// Pulls what is missing, converts, quantizes, publishes. Result: VariantAnswer.
Result<boost::json::object> run_variant(Services& services, Job& job);

} // namespace modeld::daemon
