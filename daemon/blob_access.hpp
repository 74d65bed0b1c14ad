// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/catalog.hpp"
#include "daemon/http.hpp"
#include "store/store.hpp"

#include <string_view>

namespace modeld::daemon {

/// A blob by the text of its digest. not_found, also for one that belongs only to content that the
/// peer may not read: that it is here is not told either (design rule 5).
Result<store::BlobInfo> require_blob(const store::Store& store, std::string_view digest,
                                     const Peer& peer);

/// Its bytes, open for reading.
Result<Descriptor> open_blob(const store::Store& store, const store::BlobInfo& blob);

} // namespace modeld::daemon
