// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/host.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>

namespace modeld::fetch {

/// A limit in bytes per second that many clients share. It may be changed while they run; any
/// thread. What arrives is counted afterwards, and the debt is waited off before more is read, so
/// the average holds and TCP slows the sender down.
class Bandwidth {
public:
  /// 0: no limit.
  explicit Bandwidth(std::uint64_t bytes_per_second) : limit_(bytes_per_second) {}

  void set_limit(std::uint64_t bytes_per_second);
  std::uint64_t limit() const;
  void count(std::uint64_t bytes, Clock::time_point now);
  /// How long nobody should read; 0 where there is no debt.
  Clock::duration wait(Clock::time_point now) const;

private:
  mutable std::mutex mutex_;
  std::uint64_t limit_;
  Clock::time_point paid_until_{}; ///< everything that was counted is paid for at this time
};

} // namespace modeld::fetch
