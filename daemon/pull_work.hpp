// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "fetch/hub_client.hpp"

#include <string_view>

namespace modeld::daemon {

/// What a pull is for: a build refuses a repository without usable weights before it downloads.
enum class PullFor { itself, build };

/// The request for a pull of repo[@revision]; equal pulls share a job. A token makes it the
/// user's own, since what it may see depends on it.
JobRequest pull_request(const ModelRef& ref, PullFor purpose, std::uint32_t uid,
                        fetch::Token token);

/// Resolves, lists, downloads what is missing, verifies, publishes. Result: SnapshotAnswer.
Result<boost::json::object> run_pull(Services& services, Job& job);

/// The client's limits out of the configuration, and the bandwidth that all pulls share.
fetch::HubOptions hub_options(const Services& services);

} // namespace modeld::daemon
