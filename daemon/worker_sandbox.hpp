// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace modeld::daemon {

/// What was put in place, and what the kernel does not have.
struct Sandbox {
  bool landlock = false;
  bool seccomp = false;
  std::vector<std::string> missing; ///< one line each, for the log
};

/// Takes everything from this process that a worker does not need, for good: it dies with its
/// parent, makes no core, writes no file, opens no file, has no network, runs no program, and at
/// most `memory` bytes of its own. What the kernel cannot do is left out, and told. Called once,
/// before anything of a stranger is read, while there is one thread.
Sandbox enter_sandbox(std::uint64_t memory);

} // namespace modeld::daemon
