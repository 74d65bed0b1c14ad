// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"
#include "daemon/services.hpp"
#include "store/show.hpp"
#include "store/standing.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace modeld::daemon {

/// ViewRequest of the contract, checked as far as that needs no disk.
struct LinkRequest {
  std::string ref; ///< empty: everything that the user may read, now and from now on
  store::ShowTarget target = store::ShowTarget::folder;
  store::ShowOptions options;
  bool plan = false; ///< only tell what would be made

  static Result<LinkRequest> from_json(const boost::json::object& body, std::uint32_t uid);
};

/// View and StandingView of the contract.
boost::json::object link_json(const store::LinkRecord& link);
boost::json::object standing_json(const store::StandingLink& link);

// The jobs. Results: ViewAnswer, and ViewRemoved.
Result<boost::json::object> run_link(Services& services, Job& job);
Result<boost::json::object> run_unlink(Services& services, Job& job);
/// Brings every standing link up to date, and makes again what is gone. Result: ViewAnswer.
Result<boost::json::object> run_link_sync(Services& services, Job& job);
/// Starts that where there is a reason to: called when a job that may have changed what is here is
/// finished.
void sync_links_later(Services& services);

} // namespace modeld::daemon
