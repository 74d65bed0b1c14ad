// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/silent_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace modeld::test {

// The kernel completes handshakes for a listening socket: nobody needs to accept.
SilentServer::SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address); // the kernel's interface wants it so
  if (::bind(socket_, generic, size) != 0 || ::listen(socket_, 64) != 0 ||
      ::getsockname(socket_, generic, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "listening on loopback");
  }
  endpoint_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

SilentServer::~SilentServer() {
  ::close(socket_);
}

} // namespace modeld::test
