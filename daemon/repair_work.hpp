// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"

#include <boost/json/object.hpp>

namespace modeld::daemon {

/// Brings back what is damaged: of a file that the Hub has only the bytes that are wrong, of a
/// built file all of it, and then it has to be what it was. Without "ref" everything. Result:
/// RepairAnswer.
Result<boost::json::object> run_repair(Services& services, Job& job);

} // namespace modeld::daemon
