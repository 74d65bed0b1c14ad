// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/disk.hpp"
#include "store/process.hpp"

namespace modeld::store {

/// Proof that we are the one owner of a root folder, for life: flock on `lock`, and in it the
/// identity of the owner. The second proof is for file systems on which flock excludes nobody (some
/// network ones). A clean end empties the file, so that the next start knows.
class RootLock {
public:
  /// conflict while another owner lives, with pid in the details.
  static Result<RootLock> take(const Disk& disk);
  RootLock(RootLock&& other) noexcept = default;
  RootLock& operator=(RootLock&&) = delete;
  ~RootLock() = default;

  /// Whether the last owner ended in good order.
  bool was_clean() const { return was_clean_; }
  /// Says that we end in good order; the lock itself ends with the object.
  void mark_clean(const Disk& disk);

private:
  RootLock(Fd file, bool was_clean) : file_(std::move(file)), was_clean_(was_clean) {}

  Fd file_;
  bool was_clean_;
};

/// What a record found under our own flock means. Pure, for tests.
enum class OwnerVerdict {
  gone,    ///< ended, or rebooted: take over
  alive,   ///< the same process is there
  unknown, ///< another machine or another container, where we cannot look
};
OwnerVerdict judge_owner(const ProcessIdentity& owner, const ProcessIdentity& self,
                         std::optional<std::uint64_t> start_ticks_now);

} // namespace modeld::store
