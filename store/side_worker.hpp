// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <thread>

namespace modeld::store {

/// A thread that works on one span while its owner does something else with the same bytes: writing
/// beside hashing. Nothing is copied; the bytes must stay until wait() returns.
class SideWorker {
public:
  using Work = std::function<void(std::span<const std::byte>)>;
  explicit SideWorker(Work work);
  ~SideWorker();
  SideWorker(const SideWorker&) = delete;
  SideWorker& operator=(const SideWorker&) = delete;

  void start(std::span<const std::byte> bytes);
  void wait();

private:
  void run();

  Work work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<const std::byte> bytes_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;
};

} // namespace modeld::store
