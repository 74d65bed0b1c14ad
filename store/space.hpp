// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/guarded.hpp"
#include "schema/result.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace modeld::store {

struct Usage {
  std::uint64_t capacity = 0; ///< of the file system, bytes
  std::uint64_t free = 0;     ///< for us, before reservations
  std::uint64_t reserved = 0; ///< promised to running work
};

/// What each user's files may take, in bytes; 0 for no limit.
struct UserQuotas {
  std::uint64_t each = 0;
  std::map<std::uint32_t, std::uint64_t> exceptions; ///< by user id

  std::uint64_t of(std::uint32_t uid) const;
  bool any() const { return each != 0 || !exceptions.empty(); }
};

/// What one user's files take. A file is charged to the user whose request listed it first, once,
/// however many models share it, for as long as any model has it.
struct UserUsage {
  std::uint32_t uid = 0;
  std::uint64_t used = 0;     ///< bytes
  std::uint64_t reserved = 0; ///< asked for by running work, not charged yet
  std::uint64_t quota = 0;    ///< 0: none

  bool operator==(const UserUsage&) const = default;
};

/// Sums over all running work. Shared by all reservations.
struct SpaceLedger {
  std::atomic<std::uint64_t> reserved{0};                ///< promised, and not written yet
  std::atomic<std::uint64_t> unstored{0};                ///< promised, and not in a blob's row yet
  Guarded<std::map<std::uint32_t, std::uint64_t>> asked; ///< by those who pay
};

/// A promise that so many bytes can still be written, and will be within the quotas. Given back by
/// the destructor: whoever publishes keeps it until then. Any thread.
class SpaceReservation {
public:
  /// payer: whose quota it counts for.
  SpaceReservation(std::shared_ptr<SpaceLedger> ledger, std::uint64_t bytes,
                   std::optional<std::uint32_t> payer = {});
  ~SpaceReservation();
  SpaceReservation(const SpaceReservation&) = delete;
  SpaceReservation& operator=(const SpaceReservation&) = delete;

  std::uint64_t left() const { return left_.load(); }
  /// These bytes are on the disk now: statvfs sees them itself.
  void use(std::uint64_t bytes);
  /// These are off the disk again, and will be written once more.
  void need(std::uint64_t bytes);
  /// These are blobs now.
  void store(std::uint64_t bytes);
  /// These will not be needed: somebody else brought them.
  void forgo(std::uint64_t bytes);

private:
  std::shared_ptr<SpaceLedger> ledger_;
  std::optional<std::uint32_t> payer_;
  std::atomic<std::uint64_t> left_;
  std::atomic<std::uint64_t> unstored_;
  std::atomic<std::uint64_t> asked_;
};

} // namespace modeld::store
