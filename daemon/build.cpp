// SPDX-License-Identifier: Apache-2.0
#include "daemon/build.hpp"

#include "daemon/conversion_files.hpp"
#include "daemon/log.hpp"
#include "daemon/snapshot_worker.hpp"
#include "daemon/worker_process.hpp"
#include "schema/json.hpp"
#include "schema/version.hpp"
#include "store/quarantine.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <chrono>
#include <mutex>

namespace modeld::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// What the kernel does not have is told once.
void log_missing(const boost::json::object& plan) {
  static std::once_flag told;
  const auto missing = json_array(plan, "missing");
  if (!missing || (*missing)->empty()) return;
  std::call_once(told, [&missing] {
    for (const auto& line : **missing) {
      if (line.is_string()) {
        log_warning("workers run without a part of their sandbox: {}",
                    std::string_view(line.get_string()));
      }
    }
  });
}

// One build: what the worker plans is given a name and a place, then its bytes flow into the store.
class Build {
public:
  Build(Services& services, Job& job, const Snapshot& snapshot, Recipe recipe)
      : services_(services), job_(job), snapshot_(snapshot), recipe_(std::move(recipe)) {}

  Result<store::Variant> run() {
    const auto started = Clock::now();
    job_.begin_phase("converting");
    // Sources stay while they are read.
    std::vector<Sha256Digest> sources;
    for (const SnapshotFile& file : snapshot_.files) {
      sources.push_back(file.sha256);
    }
    const auto held = services_.store.hold(sources);
    for (const Sha256Digest& source : sources) {
      MODELD_TRY(store::check_before_use(services_.store, source));
    }
    WorkerRequest request = snapshot_request(services_, snapshot_);
    request.task = WorkerRequest::Task::build;
    request.recipe = recipe_;
    const WorkerCalls calls{
        [this](std::size_t index) { return open_snapshot_file(services_.store, snapshot_, index); },
        [this](const boost::json::object& plan) { return begin(plan); }};
    MODELD_TRY(run_in_worker(request, calls, job_.progress()));
    if (ingest_ == nullptr) return fail(Errc::internal, "building: nothing was written");
    job_.begin_phase("publishing");
    MODELD_ASSIGN(const auto blob, ingest_->commit());
    variant_.result = blob.sha256;
    variant_.size = blob.size;
    variant_.added = store::now();
    variant_.build_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count());
    MODELD_TRY(services_.store.publish_variant(variant_, job_.uid()));
    services_.metrics.bytes_built(blob.size);
    return variant_;
  }

private:
  Result<ByteSink*> begin(const boost::json::object& plan) {
    log_missing(plan);
    MODELD_ASSIGN(const std::uint64_t size, json_uint(plan, "size"));
    MODELD_ASSIGN(const std::string via, json_string(plan, "via"));
    if (!recipe_.via.empty()) recipe_.via = via;
    const auto inputs = store::variant_inputs(snapshot_, recipe_);
    variant_.key = store::variant_key(inputs);
    variant_.repo = snapshot_.repo;
    variant_.commit = snapshot_.commit;
    variant_.recipe = inputs.recipe;
    variant_.converter = inputs.converter;
    variant_.sources = inputs.sources;
    variant_.file_name = store::variant_file_name(snapshot_, recipe_, variant_.key);
    store::Expected expected;
    expected.size = size;
    expected.what = variant_.file_name;
    expected.job = job_.id();
    MODELD_ASSIGN(expected.space, services_.store.reserve_space(size, job_.uid()));
    job_.begin_phase("converting", size);
    job_.progress().total = size;
    MODELD_ASSIGN(ingest_, services_.store.begin_ingest(std::move(expected)));
    return ingest_.get();
  }

  Services& services_;
  Job& job_;
  const Snapshot& snapshot_;
  Recipe recipe_;
  store::Variant variant_;
  std::unique_ptr<store::Ingest> ingest_;
};

} // namespace

Result<store::Variant> build_variant(Services& services, Job& job, const Snapshot& snapshot,
                                     Recipe recipe) {
  // A conversion sees what it reads and no more, so that its key does not depend on the rest.
  const auto part = conversion_part(services.store, snapshot);
  const Snapshot& used = part && *part ? **part : snapshot;
  MODELD_ASSIGN(const auto slot, services.builds.take(job));
  return Build(services, job, used, std::move(recipe)).run();
}

} // namespace modeld::daemon
