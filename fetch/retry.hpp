// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/headers.hpp"
#include "fetch/host.hpp"

#include <chrono>
#include <ctime>
#include <optional>

namespace modeld::fetch {

/// Pure decisions about trying again; the caller owns clock and chance.

/// 408, 425, 429 and 5xx except 501 and 505.
bool is_retryable_status(unsigned status);

/// Wait before try number `failures + 1`: 1, 2, 4, 8, 16, 30, 30 ... seconds, of which between
/// half and all by `jitter` in [0, 1).
std::chrono::milliseconds backoff(unsigned failures, double jitter);

/// What a call may still spend on waiting.
class RetryBudget {
public:
  explicit RetryBudget(std::chrono::milliseconds total) : left_(total) {}
  /// Takes `wait` from the budget; false, and takes nothing, where that much is not left.
  bool take(std::chrono::milliseconds wait);
  std::chrono::milliseconds left() const { return left_; }

private:
  std::chrono::milliseconds left_;
};

/// Failures in a row. Any new byte starts the count again; going over old ground does not.
class Attempts {
public:
  explicit Attempts(unsigned allowed) : allowed_(allowed) {}
  /// Counts a failure; the wait before the next try, or nothing where it was the last one.
  std::optional<std::chrono::milliseconds> failed(double jitter);
  void progressed() { failures_ = 0; }
  unsigned failures() const { return failures_; }

private:
  unsigned allowed_;
  unsigned failures_ = 0;
};

} // namespace modeld::fetch
