// SPDX-License-Identifier: Apache-2.0
#include "daemon/listener.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace modeld::daemon {
namespace {

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return fail(Errc::invalid_argument,
                fmt::format("listening at '{}': the path has {} bytes, allowed are 1 to {}", path,
                            path.size(), sizeof(address.sun_path) - 1),
                "choose a shorter path with --socket, MODELD_SOCKET or server.socket");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address); // the kernel's interface wants it so
}

// A name that nobody answers at is left over; anything else than a socket is never removed.
Result<void> remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail(from_errno(errno, fmt::format("listening at '{}'", path)));
  }
  if (!S_ISSOCK(status.st_mode)) {
    return fail(Errc::conflict,
                fmt::format("listening at '{}': there is something that is no socket", path),
                "remove what is at the socket's path, or choose another path with --socket");
  }
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return fail(from_errno(errno, "making a socket"));
  if (::connect(probe.get(), as_sockaddr(address), sizeof(address)) == 0 || errno == EAGAIN) {
    return fail(Errc::conflict, fmt::format("listening at '{}': a daemon answers there", path),
                "stop the other daemon, or choose another path with --socket");
  }
  if (errno != ECONNREFUSED) {
    return fail(from_errno(errno, fmt::format("listening at '{}'", path)));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return fail(from_errno(errno, fmt::format("removing the old socket '{}'", path)));
  }
  return {};
}

// Two daemons that start at once must not remove each other's socket.
Result<Descriptor> lock_folder(const std::filesystem::path& folder) {
  Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return fail(from_errno(errno, fmt::format("opening '{}'", folder.string())));
  if (::flock(lock.get(), LOCK_EX) != 0) {
    return fail(from_errno(errno, fmt::format("locking '{}'", folder.string())));
  }
  return lock;
}

} // namespace

Result<ListeningSocket> ListeningSocket::open(const std::string& path, unsigned mode,
                                              std::optional<gid_t> group) {
  const int given = sd_listen_fds(1);
  if (given == 0) return bind_new(path, mode, group);
  ListeningSocket socket;
  socket.socket_ = Descriptor(SD_LISTEN_FDS_START);
  socket.path_ = path;
  socket.from_systemd_ = true;
  if (given != 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, nullptr, 0) <= 0) {
    return fail(Errc::invalid_argument,
                fmt::format("taking the socket from systemd: got {} descriptors, expected one "
                            "listening Unix stream socket",
                            given));
  }
  return socket;
}

Result<ListeningSocket> ListeningSocket::bind_new(const std::string& path, unsigned mode,
                                                  std::optional<gid_t> group) {
  MODELD_ASSIGN(const auto address, address_of(path));
  std::error_code ec;
  const auto folder = std::filesystem::absolute(path).parent_path();
  std::filesystem::create_directories(folder, ec);
  if (ec) return fail(from_errno(ec.value(), fmt::format("making '{}'", folder.string())));
  MODELD_ASSIGN(const auto lock, lock_folder(folder));
  MODELD_TRY(remove_stale(path, address));
  ListeningSocket socket;
  socket.path_ = path;
  socket.socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.socket_.valid()) return fail(from_errno(errno, "making a socket"));
  // The mode of a socket is what umask leaves: nobody can connect before chmod says so.
  const mode_t before = ::umask(0777);
  const int bound = ::bind(socket.get(), as_sockaddr(address), sizeof(address));
  const int error = errno;
  ::umask(before);
  if (bound != 0) return fail(from_errno(error, fmt::format("listening at '{}'", path)));
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    socket.device_ = status.st_dev;
    socket.inode_ = status.st_ino;
    socket.owns_name_ = true;
  }
  if (group && ::lchown(path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    return fail(from_errno(errno, fmt::format("giving the socket '{}' to group {}", path, *group))
                    .with_hint("the daemon's user must be a member (server.socket_group)"));
  }
  if (::listen(socket.get(), SOMAXCONN) != 0 || ::chmod(path.c_str(), mode) != 0) {
    return fail(from_errno(errno, fmt::format("listening at '{}'", path)));
  }
  return socket;
}

int ListeningSocket::release() {
  const int fd = ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0);
  socket_ = Descriptor();
  return fd;
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : socket_(std::move(other.socket_)), path_(std::move(other.path_)), device_(other.device_),
      inode_(other.inode_), owns_name_(std::exchange(other.owns_name_, false)),
      from_systemd_(other.from_systemd_) {}

ListeningSocket::~ListeningSocket() {
  if (!owns_name_) return;
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(from_errno(errno, "asking who is at the other end of the socket"));
  }
  return Peer{credentials.uid, credentials.gid, credentials.pid};
}

} // namespace modeld::daemon
