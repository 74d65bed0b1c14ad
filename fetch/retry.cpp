// SPDX-License-Identifier: Apache-2.0
#include "fetch/retry.hpp"

#include <algorithm>

namespace modeld::fetch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds k_first{1'000};
constexpr milliseconds k_longest{30'000};
constexpr unsigned k_doublings = 5; // 2^5 s is over the longest

} // namespace

bool is_retryable_status(unsigned status) {
  if (status == 408 || status == 425 || status == 429) return true;
  return status >= 500 && status != 501 && status != 505;
}

milliseconds backoff(unsigned failures, double jitter) {
  const milliseconds full = std::min(
      k_longest, k_first * (1u << std::min(failures == 0 ? 0 : failures - 1, k_doublings)));
  return milliseconds(static_cast<long>(static_cast<double>(full.count()) * (0.5 + jitter / 2)));
}

bool RetryBudget::take(milliseconds wait) {
  if (wait > left_) return false;
  left_ -= wait;
  return true;
}

std::optional<milliseconds> Attempts::failed(double jitter) {
  ++failures_;
  if (failures_ >= allowed_) return std::nullopt;
  return backoff(failures_, jitter);
}

} // namespace modeld::fetch
