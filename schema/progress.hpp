// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace modeld {

/// What long work tells while it runs, and how it is told to stop. Owned by the caller, shared
/// with the workers; every member may be used from any thread.
struct Progress {
  std::atomic<std::uint64_t> done{0};  ///< bytes finished
  std::atomic<std::uint64_t> total{0}; ///< bytes in all; 0 while unknown
  std::atomic<bool> cancel{false};     ///< set: stop within 100 ms with Errc::cancelled
};

} // namespace modeld
