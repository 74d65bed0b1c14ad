// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace modeld::test {

/// A disk that hangs, for as long as one of these lives: whoever opens this relative path waits. No
/// file system that a test may make does that, so the program's openat() is the test's own.
class HangingOpen {
public:
  explicit HangingOpen(std::string path);
  ~HangingOpen();
  HangingOpen(const HangingOpen&) = delete;
  HangingOpen& operator=(const HangingOpen&) = delete;
};

} // namespace modeld::test
