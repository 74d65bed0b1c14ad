// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/job.hpp"
#include "daemon/metrics.hpp"
#include "fetch/hub_client.hpp"
#include "schema/snapshot.hpp"
#include "store/store.hpp"

#include <memory>
#include <vector>

namespace modeld::daemon {

/// What a download works with; all outlive it.
struct DownloadContext {
  store::Store& store;
  fetch::HubClient& client;
  Metrics& metrics;
  Job& job;
  const fetch::Token& token; ///< the caller's, or the daemon's own
  /// What was reserved: to be kept until what came is charged to the job's user.
  std::vector<std::shared_ptr<store::SpaceReservation>> space = {};
};

/// Brings every listed file of a commit into the store: what is there is kept, what another job is
/// fetching is waited for, the rest is downloaded and proved by size and digest. The result has the
/// files in the order of the list; `holds` keeps them from collection.
Result<std::vector<SnapshotFile>> download_files(DownloadContext& context, const RepoId& repo,
                                                 const GitOid& commit,
                                                 const std::vector<ListedFile>& files,
                                                 std::vector<store::BlobHold>& holds);

/// Proves that the job's token opens the files of a commit, by fetching the smallest one.
Result<void> prove_access(DownloadContext& context, const RepoId& repo, const GitOid& commit,
                          const std::vector<ListedFile>& files);

} // namespace modeld::daemon
