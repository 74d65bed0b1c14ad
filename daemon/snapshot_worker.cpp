// SPDX-License-Identifier: Apache-2.0
#include "daemon/snapshot_worker.hpp"

#include "daemon/blob_access.hpp"
#include "daemon/weight_check.hpp"
#include "daemon/worker_process.hpp"

#include <algorithm>
#include <thread>

namespace modeld::daemon {

WorkerRequest snapshot_request(const Services& services, const Snapshot& snapshot) {
  WorkerRequest request;
  request.name = snapshot.repo.name();
  for (const SnapshotFile& file : snapshot.files) {
    request.files.push_back({file.path, file.size});
  }
  const auto configured = static_cast<unsigned>(services.config.jobs.build_threads);
  request.threads =
      configured != 0 ? configured : std::max(1U, std::thread::hardware_concurrency());
  request.memory = services.config.jobs.worker_memory;
  return request;
}

Result<Descriptor> open_snapshot_file(const store::Store& store, const Snapshot& snapshot,
                                      std::size_t index) {
  const SnapshotFile& file = snapshot.files.at(index);
  return open_blob(store, {file.sha256, file.size, {}});
}

Result<void> check_snapshot(Services& services, Job& job, const Snapshot& snapshot) {
  if (!has_weights(snapshot)) return {};
  WorkerRequest request = snapshot_request(services, snapshot);
  if (lacks_weights(snapshot)) request.task = WorkerRequest::Task::check_each;
  const WorkerCalls calls{
      [&](std::size_t index) { return open_snapshot_file(services.store, snapshot, index); }, {}};
  MODELD_TRY(run_in_worker(request, calls, job.progress()));
  return {};
}

Result<void> check_architecture(Services& services, Job& job, const Snapshot& early,
                                ModelPart part) {
  if (early.find("config.json") == nullptr) return {}; // the conversion says what that means
  WorkerRequest request = snapshot_request(services, early);
  request.task = WorkerRequest::Task::architecture;
  request.recipe.mmproj = part == ModelPart::projector;
  const WorkerCalls calls{
      [&](std::size_t index) { return open_snapshot_file(services.store, early, index); }, {}};
  auto checked = run_in_worker(request, calls, job.progress());
  if (checked || checked.error().code != Errc::unsupported) return {};
  return fail(std::move(checked).error());
}

} // namespace modeld::daemon
