// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "schema/recipe.hpp"
#include "schema/snapshot.hpp"
#include "store/variant.hpp"

namespace modeld::daemon {

/// Converts and quantizes a snapshot by a recipe in one pass into the store, and publishes the
/// result. Sets the job's phases and bytes.
Result<store::Variant> build_variant(Services& services, Job& job, const Snapshot& snapshot,
                                     Recipe recipe);

} // namespace modeld::daemon
