// SPDX-License-Identifier: Apache-2.0
#include "daemon/terminal_width.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace modeld::daemon {

std::size_t terminal_width() {
  constexpr unsigned short k_narrowest = 20; // less is a terminal that does not know
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= k_narrowest;
  return known ? static_cast<std::size_t>(size.ws_col) - 1 : 79; // the last column may wrap
}

} // namespace modeld::daemon
