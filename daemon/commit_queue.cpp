// SPDX-License-Identifier: Apache-2.0
#include "daemon/commit_queue.hpp"

#include <utility>

namespace modeld::daemon {

Result<void> CommitQueue::add(FileSink& sink) {
  if (sink.is_small()) {
    waiting_.push_back(&sink);
    if (waiting_.size() < k_batch) return {};
  }
  if (running_.size() >= k_at_once) MODELD_TRY(wait_for_one());
  start(sink.is_small() ? std::exchange(waiting_, {}) : std::vector<FileSink*>{&sink});
  return {};
}

Result<void> CommitQueue::settle() {
  if (!waiting_.empty()) start(std::exchange(waiting_, {}));
  Result<void> first;
  while (!running_.empty()) {
    auto done = wait_for_one();
    if (first && !done) first = std::move(done);
  }
  return first;
}

Result<void> CommitQueue::wait_for_one() {
  auto oldest = std::move(running_.front());
  running_.pop_front();
  return oldest.get();
}

void CommitQueue::start(std::vector<FileSink*> batch) {
  running_.push_back(std::async(
      std::launch::async, [batch = std::move(batch)] { return FileSink::commit_all(batch); }));
}

} // namespace modeld::daemon
