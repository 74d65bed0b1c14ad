// SPDX-License-Identifier: Apache-2.0
#include "daemon/commit_queue.hpp"

#include <utility>

namespace modeld::daemon {

Result<void> CommitQueue::add(FileSink& sink) {
  waiting_.push_back(&sink);
  if (waiting_.size() < k_batch) return {};
  MODELD_TRY(wait());
  start();
  return {};
}

Result<void> CommitQueue::settle() {
  auto before = wait();
  if (!waiting_.empty()) start();
  MODELD_TRY(wait());
  return before;
}

Result<void> CommitQueue::wait() {
  return running_.valid() ? running_.get() : Result<void>{};
}

void CommitQueue::start() {
  running_ = std::async(std::launch::async, [batch = std::exchange(waiting_, {})] {
    return FileSink::commit_all(batch);
  });
}

} // namespace modeld::daemon
