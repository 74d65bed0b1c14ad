// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/host.hpp"

#include <chrono>
#include <cstdint>

namespace modeld::fetch {

/// Tells a connection that went silent from one that is slow: fewer than `rate` bytes a second over
/// a whole `period`. Counting from the request on covers servers that never answer. curl has such
/// a limit of its own, but with a clock that tests cannot own.
class SpeedWatch {
public:
  SpeedWatch(std::uint64_t rate, std::chrono::milliseconds period) : rate_(rate), period_(period) {}

  void start(Clock::time_point now) {
    since_ = now;
    bytes_ = 0;
  }
  void count(std::uint64_t bytes) { bytes_ += bytes; }
  /// Judges a period when it is over, and begins the next.
  bool stalled(Clock::time_point now) {
    if (now - since_ < period_) return false;
    const auto seconds = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(now - since_).count());
    const bool slow = bytes_ < rate_ * seconds;
    slow_periods_ = slow ? slow_periods_ + 1 : 0;
    start(now);
    return slow;
  }
  /// How many there were in a row, over as many connections: a server that drips.
  unsigned slow_periods() const { return slow_periods_; }

private:
  std::uint64_t rate_;
  std::chrono::milliseconds period_;
  Clock::time_point since_{};
  std::uint64_t bytes_ = 0;
  unsigned slow_periods_ = 0;
};

} // namespace modeld::fetch
