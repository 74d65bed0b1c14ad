// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "schema/model_ref.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>

// A look at a model on the Hub before it is pulled: the small files whole, and of the weights only
// their headers. Says what would be refused, what converts, and how large each recipe becomes.

namespace modeld::daemon {

struct RemoteCheck {
  ModelRef ref;
  std::string profile = "strict"; ///< or "compat"
  std::uint64_t context = 0;      ///< tokens, for the estimate; 0: the usual
};

/// A job of kind "check".
JobRequest check_request(const RemoteCheck& check, std::uint32_t uid, fetch::Token token);

/// {"repo","commit","bytes","bytes_read","files":[...],"estimate"|"no_estimate":{...}}
/// (check_report.hpp, estimate.hpp). Nothing is kept.
Result<boost::json::object> run_remote_check(Services& services, Job& job);

} // namespace modeld::daemon
