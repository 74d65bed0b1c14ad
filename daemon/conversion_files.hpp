// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/snapshot.hpp"
#include "store/store.hpp"

#include <optional>
#include <vector>

// Which files of a repository a conversion reads. A build sees these and no others, so that its key
// and its bytes do not depend on what else of the repository is here.

namespace modeld::daemon {

/// The files that tell whether and from which weights a model can be built: small, and fetched
/// first.
std::vector<ListedFile> deciding_files(const std::vector<ListedFile>& listing);

/// Those that a conversion reads; the shard index, where there is one, has to be in the store. The
/// errors of fetch::select_for_conversion.
Result<std::vector<ListedFile>> conversion_files(const store::Store& store,
                                                 const std::vector<ListedFile>& listing);

/// The snapshot with those files alone, the others as absent; nothing where one of them is not
/// here.
Result<std::optional<Snapshot>> conversion_part(const store::Store& store,
                                                const Snapshot& snapshot);

} // namespace modeld::daemon
