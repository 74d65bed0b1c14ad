// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "daemon/snapshot_worker.hpp"
#include "fetch/hub_client.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// What a pull is for. A build takes what its conversion reads, and refuses a repository without
/// usable weights or of an unknown architecture before it downloads them; it takes a file alone
/// where the selector means one. A build by a recipe of the user's own (weights) never does that.
enum class PullFor { itself, build, weights };

/// For a build also what of the model is to be built, or taken ready made.
struct PullPurpose {
  PullFor what = PullFor::itself;
  ModelPart part = ModelPart::model;
};

/// Which files a pull for itself takes: all, or by patterns (fetch::select_by_patterns).
struct PullPatterns {
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  bool all() const { return include.empty() && exclude.empty(); }
};

/// The request for a pull of repo[@revision][:selector]; equal pulls share a job. A token makes it
/// the user's own, since what it may see depends on it.
JobRequest pull_request(const ModelRef& ref, PullPurpose purpose, const PullPatterns& patterns,
                        std::uint32_t uid, fetch::Token token);

/// Whether a snapshot has all that a pull for itself with these patterns would take.
Result<bool> has_all(const Snapshot& snapshot, const PullPatterns& patterns);

/// Resolves, lists, downloads what is missing, verifies, publishes. Result: SnapshotAnswer, or
/// VariantAnswer where a file alone was meant; "pull" in it tells what was chosen and what moved.
Result<boost::json::object> run_pull(Services& services, Job& job);

/// The caller's token where there is one, else that of hub.token_file: read anew for each pull, so
/// that it may be changed. denied where others may read the file.
Result<fetch::Token> hub_token(const Services& services, const fetch::Token& own);

/// The client's limits out of the configuration, and the bandwidth that all pulls share.
fetch::HubOptions hub_options(const Services& services);
/// The same for a job, which has a limit of its own too.
fetch::HubOptions hub_options(const Services& services, const Job& job);

} // namespace modeld::daemon
