// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "store/collect.hpp"

#include <boost/json/object.hpp>

namespace modeld::daemon {

/// GcRequest of the contract: what shall go. Unknown members were refused before.
Result<store::CollectOptions> collect_options(const boost::json::object& body);

/// CollectPlan of the contract. At most `most` items; those that go come first.
boost::json::object plan_json(const store::CollectPlan& plan, std::size_t most);

// The jobs that look after the store. Results: GcAnswer, FsckAnswer, ScrubAnswer.
Result<boost::json::object> run_gc(Services& services, Job& job);
Result<boost::json::object> run_fsck(Services& services, Job& job);
Result<boost::json::object> run_scrub(Services& services, Job& job);

} // namespace modeld::daemon
