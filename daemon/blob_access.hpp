// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/catalog.hpp"
#include "daemon/http.hpp"
#include "daemon/services.hpp"
#include "store/store.hpp"

#include <string_view>

namespace modeld::daemon {

/// A blob by the text of its digest. not_found, also for one that belongs only to content that the
/// peer may not read: that it is here is not told either (design rule 5).
Result<store::BlobInfo> require_blob(const store::Store& store, std::string_view digest,
                                     const Peer& peer);

/// busy where its size or time is not as it was when it was proved: a job looks closer meanwhile.
Result<void> require_unchanged(Services& services, const store::BlobInfo& blob);

/// Its bytes, open for reading.
Result<Descriptor> open_blob(const store::Store& store, const store::BlobInfo& blob);

} // namespace modeld::daemon
