// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/host.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace modeld::fetch {

/// How many ranges of large files at once help: doubles the number as long as that makes the whole
/// faster by a tenth, else goes back a step and stays there for half a minute.
class RangeTuner {
public:
  explicit RangeTuner(unsigned most) : most_(std::max(1u, most)), level_(std::min(2u, most_)) {}

  unsigned level() const { return level_; }

  /// Tells the bytes that came in all until now.
  void measure(Clock::time_point now, std::uint64_t bytes) {
    if (since_ == Clock::time_point{}) {
      since_ = now;
      bytes_ = bytes;
    }
    if (now - since_ < k_period) return;
    const double seconds = std::chrono::duration<double>(now - since_).count();
    judge(now, static_cast<double>(bytes - bytes_) / seconds);
    since_ = now;
    bytes_ = bytes;
  }

private:
  static constexpr std::chrono::milliseconds k_period{1'000};
  static constexpr std::chrono::seconds k_rest{30};
  static constexpr double k_worthwhile = 1.1;

  void judge(Clock::time_point now, double rate) {
    if (now < rest_until_) return;
    const bool in_vain = raised_ && rate < best_ * k_worthwhile;
    best_ = rate;
    raised_ = !in_vain && level_ < most_;
    if (in_vain) level_ = std::max(1u, level_ / 2);
    if (raised_) {
      level_ = std::min(level_ * 2, most_);
    } else {
      rest_until_ = now + k_rest;
    }
  }

  unsigned most_;
  unsigned level_;
  bool raised_ = false; ///< by the last judgement
  double best_ = 0;     ///< bytes per second, at the level before
  Clock::time_point since_{};
  Clock::time_point rest_until_{};
  std::uint64_t bytes_ = 0;
};

} // namespace modeld::fetch
