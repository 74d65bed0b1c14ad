// SPDX-License-Identifier: Apache-2.0
#include "daemon/client_connection.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace modeld::daemon {
namespace {

constexpr std::string_view k_start_hint =
    "start the daemon: `systemctl start modeld`, `systemctl --user start modeld`, or "
    "`modeld --root DIR --socket PATH`; --socket or MODELD_SOCKET says where it is";

Error connect_error(int error, const std::string& path) {
  Error out = from_errno(error, fmt::format("connecting to the daemon at '{}'", path));
  if (out.code == Errc::denied) {
    return std::move(out).with_hint("the socket's mode and group say who may use the daemon");
  }
  out.code = Errc::unreachable;
  return std::move(out).with_hint(std::string(k_start_hint));
}

Error lost(int error) {
  Error out = from_errno(error, "talking to the daemon");
  out.code = Errc::unreachable;
  return out;
}

} // namespace

Result<UnixConnection> UnixConnection::open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return fail(Errc::invalid_argument,
                fmt::format("connecting to '{}': a socket's path has 1 to {} bytes", path,
                            sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UnixConnection connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connection.fd_ < 0) return fail(from_errno(errno, "making a socket"));
  // The kernel's interface wants the cast.
  if (::connect(connection.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return fail(connect_error(errno, path));
  }
  return connection;
}

UnixConnection::~UnixConnection() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> UnixConnection::write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail(lost(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::string_view> UnixConnection::read(int interrupt) {
  while (true) {
    std::array<pollfd, 2> wait{pollfd{fd_, POLLIN, 0}, pollfd{interrupt, POLLIN, 0}};
    // poll(2) leaves entries with a negative descriptor out.
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return fail(lost(errno));
    if (wait[1].revents != 0) return fail(Errc::cancelled, "waiting for the daemon: interrupted");
    if (wait[0].revents == 0) continue;
    const ssize_t got = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(lost(errno));
    return std::string_view(buffer_.data(), static_cast<std::size_t>(got));
  }
}

} // namespace modeld::daemon
