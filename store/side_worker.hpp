// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
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
  enum class State { idle, busy, ending };

  void run();
  /// Until there is something to do, or the end.
  State next() const;

  Work work_;
  std::span<const std::byte> bytes_; ///< the owner's while idle, the thread's while busy
  std::atomic<State> state_{State::idle};
  std::thread thread_;
};

} // namespace modeld::store
