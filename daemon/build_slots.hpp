// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/job.hpp"
#include "schema/guarded.hpp"
#include "schema/result.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>

namespace modeld::daemon {

/// How many builds run at once: each uses all processors, so more at once only costs memory. Any
/// thread.
class BuildSlots {
public:
  explicit BuildSlots(std::uint64_t slots) : free_(slots) {}

  /// A slot until it is dropped. Waits, and tells so in the job's notice; cancelled with the job.
  using Slot = std::shared_ptr<void>;
  Result<Slot> take(Job& job);

private:
  Guarded<std::uint64_t> free_;
  std::condition_variable freed_;
};

} // namespace modeld::daemon
