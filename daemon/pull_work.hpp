// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "fetch/hub_client.hpp"

#include <string_view>

namespace modeld::daemon {

/// What a pull is for. A build refuses a repository without usable weights before it downloads, and
/// takes a file alone where the selector means one; a build by a recipe of the user's own (weights)
/// never does.
enum class PullFor { itself, build, weights };

/// The request for a pull of repo[@revision][:selector]; equal pulls share a job. A token makes it
/// the user's own, since what it may see depends on it.
JobRequest pull_request(const ModelRef& ref, PullFor purpose, std::uint32_t uid,
                        fetch::Token token);

/// Resolves, lists, downloads what is missing, verifies, publishes. Result: SnapshotAnswer, or
/// VariantAnswer where a file alone was meant.
Result<boost::json::object> run_pull(Services& services, Job& job);

/// The client's limits out of the configuration, and the bandwidth that all pulls share.
fetch::HubOptions hub_options(const Services& services);

} // namespace modeld::daemon
