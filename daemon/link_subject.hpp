// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/catalog.hpp"
#include "daemon/services.hpp"
#include "store/show.hpp"

#include <string_view>
#include <vector>

// What is shown to other programs, out of what the store has.

namespace modeld::daemon {

/// A snapshot with everything that was built from it, or files that are kept without it.
Result<store::ShowSubject> whole_subject(const store::Store& store, const Place& place);

/// Only what a selector means; nothing where that is not here.
Result<std::optional<store::ShowSubject>> selected_subject(store::Store& store, const Place& place,
                                                           std::string_view selector);

/// Every place of which there is something here that this user may read, by repository and commit.
Result<std::vector<Place>> places_of(const store::Store& store, const Peer& peer);

/// What Ollama wants to be told about each GGUF file, read in a worker. Parts of split models are
/// left out.
Result<void> add_facts(Services& services, Job& job, store::ShowSubject& subject);

} // namespace modeld::daemon
