// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace modeld::test {

/// What a process left behind.
struct Finished {
  int status = -1; ///< exit status, or 128 + signal
  std::string out;
  std::string err;
};

/// A child process with its output in files. Killed and reaped at the end of its owner.
class Process {
public:
  using Environment = std::map<std::string, std::string>;

  /// The child has our environment with these changes; an empty value removes a variable. Throws
  /// where it cannot be started.
  Process(const std::vector<std::string>& command, const Environment& environment = {});
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;
  /// Waits so long; nothing where it still runs.
  std::optional<Finished> wait(std::chrono::milliseconds time);
  /// What it has written so far.
  std::string out() const;
  std::string err() const;

private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::optional<int> status_;
};

/// Runs to the end; throws after a minute.
Finished run(const std::vector<std::string>& command, const Process::Environment& environment = {});

/// Looks again and again until it holds; whether it came to hold in time.
bool wait_until(const std::function<bool()>& condition,
                std::chrono::milliseconds time = std::chrono::milliseconds(20'000));

} // namespace modeld::test
