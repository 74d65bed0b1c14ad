// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/headers.hpp"
#include "schema/model_ref.hpp"
#include "schema/result.hpp"

#include <string>
#include <string_view>

namespace modeld::fetch {

/// What was asked for, to tell in messages what is missing.
struct Subject {
  std::string_view endpoint; ///< for pages to visit
  std::string_view repo;
  std::string_view revision; ///< may be empty
  std::string_view path;     ///< may be empty
  bool had_token = false;
};

/// The Hub's refusals told apart (hub-protocol.md section 2, failure case C18): repository,
/// revision or file that is not there (not_found, detail "missing"); token needed, refused, not
/// approved, or the repository disabled (denied, detail "reason"); statuses that a retry may mend
/// (net_transient); all else net_permanent. Detail "http_status" always.
Error refusal(const Subject& subject, unsigned status, const Headers& headers,
              std::string_view body);

} // namespace modeld::fetch
