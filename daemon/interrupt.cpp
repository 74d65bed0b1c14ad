// SPDX-License-Identifier: Apache-2.0
#include "daemon/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace modeld::daemon {
namespace {

// What a signal handler may touch.
volatile std::sig_atomic_t g_requested = 0;
std::array<int, 2> g_pipe{-1, -1};
std::array<struct sigaction, 2> g_before{};
constexpr std::array k_signals{SIGINT, SIGTERM};

extern "C" void on_signal(int) {
  const int error = errno;
  g_requested = 1;
  const char byte = 0;
  (void)!::write(g_pipe[1], &byte, 1); // a full pipe is readable already
  errno = error;
}

} // namespace

Interrupt::Interrupt() {
  g_requested = 0;
  if (::pipe2(g_pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) g_pipe = {-1, -1};
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (std::size_t i = 0; i < k_signals.size(); ++i) {
    ::sigaction(k_signals[i], &action, &g_before[i]);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < k_signals.size(); ++i) {
    ::sigaction(k_signals[i], &g_before[i], nullptr);
  }
  for (int& end : g_pipe) {
    if (end >= 0) ::close(end);
    end = -1;
  }
}

bool Interrupt::requested() const {
  return g_requested != 0;
}

int Interrupt::descriptor() const {
  return g_pipe[0];
}

bool Interrupt::wait(std::chrono::milliseconds time) const {
  pollfd entry{g_pipe[0], POLLIN, 0};
  if (!requested()) ::poll(&entry, 1, static_cast<int>(time.count()));
  return requested();
}

} // namespace modeld::daemon
