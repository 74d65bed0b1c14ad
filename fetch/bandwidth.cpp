// SPDX-License-Identifier: Apache-2.0
#include "fetch/bandwidth.hpp"

#include <algorithm>

namespace modeld::fetch {
namespace {

// A share that was told to wait and does not ask again within this time has gone.
constexpr std::chrono::milliseconds k_gone{200};
constexpr std::chrono::milliseconds k_turn{10}; // for whoever is next to take it

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
  if (of_->limit_ == 0) return;
  const auto limit = static_cast<double>(of_->limit_);
  const auto more = static_cast<double>(bytes);
  of_->paid_until_ =
      std::max(of_->paid_until_, now) +
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(more / limit));
  // Who read little for a while has no claim on more than a second of catching up.
  read_ = std::max(read_, of_->read_ - limit) + more;
  of_->read_ = read_;
}

Clock::duration Bandwidth::Share::wait(Clock::time_point now) {
  const std::lock_guard lock(of_->mutex_);
  if (of_->limit_ == 0) return Clock::duration::zero();
  asked_ = now;
  const bool behind =
      std::any_of(of_->shares_.begin(), of_->shares_.end(), [&](const Share* other) {
        return other != this && other->waits_ && now - other->asked_ < k_gone &&
               other->read_ < read_;
      });
  const Clock::duration debt = std::max(of_->paid_until_ - now, Clock::duration::zero());
  waits_ = behind || debt > Clock::duration::zero();
  return behind ? std::max<Clock::duration>(debt, k_turn) : debt;
}

void Bandwidth::set_limit(std::uint64_t bytes_per_second) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes_per_second;
  paid_until_ = {}; // an old debt at an old price could be hours
}

std::uint64_t Bandwidth::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

} // namespace modeld::fetch
