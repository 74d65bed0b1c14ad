// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/client.hpp"
#include "daemon/command.hpp"

#include <boost/json/object.hpp>

#include <string_view>

namespace modeld::daemon {

/// Shows a job's progress on stderr until it ends: a bar on a terminal, else a line for each phase.
/// Gives its result, or its error. Goes on after a restart of the daemon. Ctrl-C leaves the job to
/// itself, says so, and is Errc::cancelled.
Result<boost::json::object> watch_job(CommandContext& context, Client& client,
                                      std::string_view job);

/// The answer to a request that may take a job: the object itself, or what its job comes to.
/// Without `wait` the job's id and how to watch it, as the result.
enum class Wait { yes, no };
Result<boost::json::object> finish(CommandContext& context, Client& client, Client::Answer answer,
                                   Wait wait);

} // namespace modeld::daemon
