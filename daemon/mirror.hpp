// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"
#include "daemon/services.hpp"

namespace modeld::daemon {

/// Answers as the Hub does (hub-protocol.md, appendix B), out of snapshots that are here and that
/// need no token: an unmodified client with HF_ENDPOINT pointing here uses the store. Nothing is
/// fetched for it. Any thread; `services` outlives it.
class Mirror {
public:
  explicit Mirror(Services& services) : services_(services) {}

  /// GET, HEAD and POST of any path; always an answer, errors in the Hub's own form.
  Response handle(const Request& request) const;

private:
  Services& services_;
};

} // namespace modeld::daemon
