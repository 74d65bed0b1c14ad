// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output.hpp"
#include "schema/progress.hpp"

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace modeld::daemon {

/// Shows how far local work is while it lives (phase, share, rate, time left; only on a terminal),
/// and turns Ctrl-C and SIGTERM into progress.cancel. One at a time in a process. While it lives
/// the owner must not use `out`.
class WorkProgress {
public:
  WorkProgress(Output& out, Progress& progress, std::string phase);
  ~WorkProgress();
  WorkProgress(const WorkProgress&) = delete;
  WorkProgress& operator=(const WorkProgress&) = delete;

private:
  void draw();

  Output& out_;
  Progress& progress_;
  std::string phase_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace modeld::daemon
