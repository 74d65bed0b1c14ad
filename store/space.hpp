// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace modeld::store {

struct Usage {
  std::uint64_t capacity = 0; ///< of the file system, bytes
  std::uint64_t free = 0;     ///< for us, before reservations
  std::uint64_t reserved = 0; ///< promised to running work
};

/// Sum of what running work was promised and has not written yet. Shared by all reservations.
struct SpaceLedger {
  std::atomic<std::uint64_t> reserved{0};
};

/// A promise that so many bytes can still be written. Given back by the destructor; shrinks by what
/// is used, since statvfs then sees those bytes itself. Any thread.
class SpaceReservation {
public:
  SpaceReservation(std::shared_ptr<SpaceLedger> ledger, std::uint64_t bytes);
  ~SpaceReservation();
  SpaceReservation(const SpaceReservation&) = delete;
  SpaceReservation& operator=(const SpaceReservation&) = delete;

  std::uint64_t left() const { return left_.load(); }
  /// These bytes are on the disk now, or will not be needed.
  void use(std::uint64_t bytes);

private:
  std::shared_ptr<SpaceLedger> ledger_;
  std::atomic<std::uint64_t> left_;
};

} // namespace modeld::store
