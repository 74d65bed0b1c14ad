// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace modeld::daemon {

/// Ctrl-C (SIGINT) and SIGTERM as something that can be waited for, while it lives. At most one at
/// a time in a process; the handlers from before come back at its end. Without one, the signals end
/// the process as they always do.
class Interrupt {
public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
  /// Readable once requested.
  int descriptor() const;
  /// Waits so long, or until requested; whether it is.
  bool wait(std::chrono::milliseconds time) const;
};

} // namespace modeld::daemon
