// SPDX-License-Identifier: Apache-2.0
#include "fetch/bandwidth.hpp"

#include <algorithm>

namespace modeld::fetch {

void Bandwidth::set_limit(std::uint64_t bytes_per_second) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes_per_second;
  paid_until_ = {}; // an old debt at an old price could be hours
}

std::uint64_t Bandwidth::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

void Bandwidth::count(std::uint64_t bytes, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (limit_ == 0) return;
  const std::chrono::duration<double> cost(static_cast<double>(bytes) /
                                           static_cast<double>(limit_));
  paid_until_ = std::max(paid_until_, now) + std::chrono::duration_cast<Clock::duration>(cost);
}

Clock::duration Bandwidth::wait(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return limit_ == 0 ? Clock::duration::zero()
                     : std::max(paid_until_ - now, Clock::duration::zero());
}

} // namespace modeld::fetch
