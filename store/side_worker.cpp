// SPDX-License-Identifier: Apache-2.0
#include "store/side_worker.hpp"

#include <utility>

namespace modeld::store {

SideWorker::SideWorker(Work work) : work_(std::move(work)), thread_([this] { run(); }) {}

SideWorker::~SideWorker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SideWorker::start(std::span<const std::byte> bytes) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ = bytes;
    busy_ = true;
  }
  changed_.notify_all();
}

void SideWorker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

void SideWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || ending_; });
    if (!busy_) return;
    const auto bytes = bytes_;
    lock.unlock();
    work_(bytes);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

} // namespace modeld::store
