// SPDX-License-Identifier: Apache-2.0
#include "daemon/build_slots.hpp"

#include <chrono>

namespace modeld::daemon {

Result<BuildSlots::Slot> BuildSlots::take(Job& job) {
  constexpr std::chrono::milliseconds k_look_for_cancel{50};
  auto free = free_.lock();
  while (*free == 0) {
    free.mutex().unlock();
    job.set_notice("waiting for another build to end");
    if (job.cancelled()) return fail(Errc::cancelled, "waiting for another build: cancelled");
    free.mutex().lock();
    freed_.wait_for(free.mutex(), k_look_for_cancel, [&free] { return *free > 0; });
  }
  --*free;
  free.mutex().unlock();
  job.set_notice({});
  return Slot(this, [](BuildSlots* slots) {
    ++*slots->free_.lock();
    slots->freed_.notify_one();
  });
}

} // namespace modeld::daemon
