// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/host.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace modeld::fetch {

/// A limit in bytes per second that many clients share. It may be changed while they run; any
/// thread. What arrives is counted afterwards, and the debt is waited off before more is read, so
/// the average holds and TCP slows the sender down.
class Bandwidth {
public:
  /// One client's part. Where several want more than there is, each gets the same, however many
  /// connections it has; what one does not use, the others may.
  class Share {
  public:
    explicit Share(std::shared_ptr<Bandwidth> of);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    void count(std::uint64_t bytes, Clock::time_point now);
    /// How long this client should not read; 0 where there is no debt.
    Clock::duration wait(Clock::time_point now) const;

  private:
    friend Bandwidth;
    std::shared_ptr<Bandwidth> of_;
    Clock::time_point paid_until_{}; ///< guarded by the mutex of of_, as last_
    Clock::time_point last_{};       ///< when it counted last
  };

  /// 0: no limit.
  explicit Bandwidth(std::uint64_t bytes_per_second) : limit_(bytes_per_second) {}

  void set_limit(std::uint64_t bytes_per_second);
  std::uint64_t limit() const;

private:
  Clock::duration cost(double bytes) const;

  mutable std::mutex mutex_;
  std::uint64_t limit_;
  Clock::time_point paid_until_{}; ///< everything that was counted is paid for at this time
  std::vector<Share*> shares_;
};

} // namespace modeld::fetch
