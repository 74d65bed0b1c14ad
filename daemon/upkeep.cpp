// SPDX-License-Identifier: Apache-2.0
#include "daemon/upkeep.hpp"

#include "daemon/link_work.hpp"
#include "daemon/log.hpp"

#include <chrono>
#include <utility>

namespace modeld::daemon {
namespace {

// What a crash may forget of the times of use; collection by age counts in days.
constexpr std::chrono::minutes k_round{1};

} // namespace

void Upkeep::start() {
  changed_ = grew_ = true; // what happened while no daemon ran
  thread_ = std::thread([this] { run(); });
}

void Upkeep::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Upkeep::content_changed(Change change) {
  {
    const std::lock_guard lock(mutex_);
    changed_ = true;
    grew_ = grew_ || change == Change::more;
  }
  wake_.notify_all();
}

void Upkeep::run() {
  while (true) {
    bool changed = false;
    bool grew = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, k_round, [this] { return stopping_ || changed_; });
      if (stopping_) return;
      changed = std::exchange(changed_, false);
      grew = std::exchange(grew_, false);
    }
    look(changed, grew);
  }
}

void Upkeep::look(bool changed, bool grew) {
  if (auto done = services_.store.flush_uses(); !done) {
    log_warning("keeping times of use: {}", done.error().message);
  }
  if (!changed) return;
  sync_links_later(services_);
  // Not after a collection: one that could not reach the mark would follow the other for ever.
  if (grew) collect_above_mark();
}

void Upkeep::collect_above_mark() {
  const std::uint64_t high = services_.config.store.high_water;
  if (high == 0) return;
  const auto stored = services_.store.stored_bytes();
  if (!stored || *stored <= high) return;
  const std::uint64_t given = services_.config.store.low_water;
  const std::uint64_t low = given != 0 && given < high ? given : high / 10 * 9;
  log_info("{} bytes are stored, store.high_water is {}: collecting down to {}", *stored, high,
           low);
  JobRequest request;
  request.kind = "gc";
  request.ref = "gc";
  request.key = "gc by itself";
  request.detail = {{"size_target", low}};
  request.by_client = false;
  if (auto job = services_.jobs.submit(std::move(request)); !job) {
    log_warning("collecting: {}", job.error().message);
  }
}

} // namespace modeld::daemon
