// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace modeld::daemon {

/// What the daemon does for the store without being asked, on a thread of its own: times of use go
/// to the disk, links in other programs' folders are kept in step, and above the high-water mark a
/// collection starts. Outlived by what it works with.
class Upkeep {
public:
  explicit Upkeep(Services& services) : services_(services) {}
  ~Upkeep() { stop(); }
  Upkeep(const Upkeep&) = delete;
  Upkeep& operator=(const Upkeep&) = delete;

  void start();
  void stop();
  /// There is more in the store than before, or less. Any thread; returns at once.
  enum class Change { more, less };
  void content_changed(Change change);

private:
  void run();
  void look(bool changed, bool grew);
  void collect_above_mark();

  Services& services_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool changed_ = false;
  bool grew_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

} // namespace modeld::daemon
