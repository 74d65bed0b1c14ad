// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <system_error>
#include <utility>

extern char** environ; // NOLINT: the C library's name

namespace modeld::test {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> merged(const Process::Environment& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) out.push_back(name + "=" + value);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) {
    out.push_back(text.data());
  }
  out.push_back(nullptr);
  return out;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> buffer;
  ssize_t got = 0;
  while ((got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

} // namespace

Process::Process(const std::vector<std::string>& command, const Environment& environment)
    : out_(::memfd_create("stdout", MFD_CLOEXEC)), err_(::memfd_create("stderr", MFD_CLOEXEC)) {
  std::vector<std::string> words = command;
  std::vector<std::string> variables = merged(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_, STDERR_FILENO);
  const int failed = ::posix_spawnp(&pid_, words.front().c_str(), &actions, nullptr,
                                    pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw std::system_error(failed, std::generic_category(), "starting " + words.front());
  }
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), out_(std::exchange(other.out_, -1)),
      err_(std::exchange(other.err_, -1)), status_(other.status_) {}

Process::~Process() {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

bool Process::running() {
  return !wait(std::chrono::milliseconds(0)).has_value();
}

void Process::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

std::optional<Finished> Process::wait(std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    if (Clock::now() >= deadline) return {};
    ::poll(nullptr, 0, 1);
  }
  return Finished{*status_, out(), err()};
}

std::string Process::out() const {
  return read_all(out_);
}

std::string Process::err() const {
  return read_all(err_);
}

Finished run(const std::vector<std::string>& command, const Process::Environment& environment) {
  Process process(command, environment);
  auto finished = process.wait(std::chrono::seconds(60));
  if (!finished) {
    throw std::runtime_error(command.front() + " did not end within a minute: " + process.err());
  }
  return *std::move(finished);
}

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

} // namespace modeld::test
