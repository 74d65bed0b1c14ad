// SPDX-License-Identifier: Apache-2.0
#include "fetch/bandwidth.hpp"

#include <algorithm>

namespace modeld::fetch {
namespace {

constexpr std::chrono::seconds k_active{1};        // a share that counted within it takes part
constexpr std::chrono::milliseconds k_unused{100}; // so long without debt: there is enough for all

} // namespace

Bandwidth::Share::Share(std::shared_ptr<Bandwidth> of) : of_(std::move(of)) {
  const std::lock_guard lock(of_->mutex_);
  of_->shares_.push_back(this);
}

Bandwidth::Share::~Share() {
  const std::lock_guard lock(of_->mutex_);
  std::erase(of_->shares_, this);
}

void Bandwidth::Share::count(std::uint64_t bytes, Clock::time_point now) {
  const std::lock_guard lock(of_->mutex_);
  last_ = now;
  if (of_->limit_ == 0) return;
  const auto active =
      std::count_if(of_->shares_.begin(), of_->shares_.end(),
                    [now](const Share* one) { return now - one->last_ <= k_active; });
  const auto all = static_cast<double>(bytes);
  of_->paid_until_ = std::max(of_->paid_until_, now) + of_->cost(all);
  paid_until_ = std::max(paid_until_, now) + of_->cost(all * static_cast<double>(active));
}

Clock::duration Bandwidth::Share::wait(Clock::time_point now) const {
  const std::lock_guard lock(of_->mutex_);
  if (of_->limit_ == 0 || now - of_->paid_until_ > k_unused) return Clock::duration::zero();
  return std::max({of_->paid_until_ - now, paid_until_ - now, Clock::duration::zero()});
}

void Bandwidth::set_limit(std::uint64_t bytes_per_second) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes_per_second;
  paid_until_ = {}; // an old debt at an old price could be hours
  for (Share* share : shares_) {
    share->paid_until_ = {};
  }
}

std::uint64_t Bandwidth::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

Clock::duration Bandwidth::cost(double bytes) const {
  const std::chrono::duration<double> seconds(bytes / static_cast<double>(limit_));
  return std::chrono::duration_cast<Clock::duration>(seconds);
}

} // namespace modeld::fetch
