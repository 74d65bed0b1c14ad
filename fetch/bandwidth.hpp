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
  /// connections it has: of those that wait, the one that has read least goes next. What one does
  /// not use, the others may.
  class Share {
  public:
    explicit Share(std::shared_ptr<Bandwidth> of);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    void count(std::uint64_t bytes, Clock::time_point now);
    /// How long this client should not read; 0 where it may. Asked again and again until then.
    Clock::duration wait(Clock::time_point now);

  private:
    friend Bandwidth;
    std::shared_ptr<Bandwidth> of_; ///< its mutex guards the rest
    double read_ = 0;    ///< bytes; raised to what the others have, less a second's worth
    bool waits_ = false; ///< was told to, when it asked last
    Clock::time_point asked_{};
  };

  /// 0: no limit.
  explicit Bandwidth(std::uint64_t bytes_per_second) : limit_(bytes_per_second) {}

  void set_limit(std::uint64_t bytes_per_second);
  std::uint64_t limit() const;

private:
  mutable std::mutex mutex_;
  std::uint64_t limit_;
  Clock::time_point paid_until_{}; ///< everything that was counted is paid for at this time
  double read_ = 0;                ///< by the share that read last
  std::vector<Share*> shares_;
};

} // namespace modeld::fetch
