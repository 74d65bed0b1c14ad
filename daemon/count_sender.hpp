// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/worker_channel.hpp"
#include "schema/progress.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace modeld::daemon {

/// Tells a worker's owner how far the work is, while this lives. Both must outlive it.
class CountSender {
public:
  CountSender(const WorkerChannel& channel, const Progress& progress);
  CountSender(const CountSender&) = delete;
  CountSender& operator=(const CountSender&) = delete;
  ~CountSender();

private:
  void run();

  const WorkerChannel& channel_;
  const Progress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace modeld::daemon
