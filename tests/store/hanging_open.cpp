// SPDX-License-Identifier: Apache-2.0
#include "tests/store/hanging_open.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdarg>
#include <mutex>
#include <utility>

namespace {

struct Hanging {
  std::mutex mutex;
  std::condition_variable changed;
  std::string path; ///< empty: none
};

Hanging& hanging() {
  static Hanging instance;
  return instance;
}

} // namespace

namespace modeld::test {

HangingOpen::HangingOpen(std::string path) {
  const std::lock_guard lock(hanging().mutex);
  hanging().path = std::move(path);
}

HangingOpen::~HangingOpen() {
  const std::lock_guard lock(hanging().mutex);
  hanging().path.clear();
  hanging().changed.notify_all();
}

} // namespace modeld::test

// In place of the C library's, without its header, which defines it inline.
extern "C" int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = va_arg(rest, unsigned); // not read by the kernel where nothing is created
  va_end(rest);
  {
    auto& state = hanging();
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.path.empty() || state.path != path; });
  }
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}
