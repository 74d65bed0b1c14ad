// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_channel.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace modeld::daemon {
namespace {

// Room for one descriptor, aligned as the kernel's macros want it.
union Control {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

Descriptor take_descriptor(msghdr& message) {
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
      head->cmsg_len != CMSG_LEN(sizeof(int))) {
    return {};
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
  return Descriptor(fd);
}

Result<void> wait_readable(int socket, std::chrono::milliseconds time) {
  pollfd entry{socket, POLLIN, 0};
  const int ready = ::poll(&entry, 1, static_cast<int>(time.count()));
  if (ready > 0 || (ready < 0 && errno == EINTR)) return {};
  if (ready == 0) return fail(Errc::busy, "waiting for the other end of a worker's channel");
  return fail(from_errno(errno, "waiting for the other end of a worker's channel"));
}

} // namespace

Result<std::pair<Descriptor, Descriptor>> WorkerChannel::make_pair() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(from_errno(errno, "making a worker's channel"));
  }
  return std::pair(Descriptor(ends[0]), Descriptor(ends[1]));
}

Result<void> WorkerChannel::send(Packet kind, std::span<const std::byte> payload,
                                 int descriptor) const {
  if (payload.size() > k_max_payload) {
    return fail(Errc::invalid_argument, fmt::format("sending {} bytes to a worker, allowed are {}",
                                                    payload.size(), k_max_payload));
  }
  auto first = static_cast<std::byte>(kind);
  std::array<iovec, 2> pieces{iovec{&first, 1},
                              iovec{const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  Control control{};
  if (descriptor >= 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  }
  while (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    Error error = from_errno(errno, "talking to the other end of a worker's channel");
    error.code = Errc::io; // also for EPERM and the like: it is no question of rights
    return fail(std::move(error));
  }
  return {};
}

Result<void> WorkerChannel::send(Packet kind, std::string_view text) const {
  return send(kind, std::as_bytes(std::span(text)));
}

Result<std::optional<WorkerChannel::Received>>
WorkerChannel::receive(std::chrono::milliseconds time) {
  while (true) {
    MODELD_TRY(wait_readable(socket_.get(), time));
    iovec piece{buffer_.data(), buffer_.size()};
    Control control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0 && errno == ECONNRESET) return std::optional<Received>{};
    if (got < 0) return fail(from_errno(errno, "reading a worker's channel"));
    if (got == 0) return std::optional<Received>{};
    Received received;
    received.descriptor = take_descriptor(message);
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
      return fail(Errc::malformed, "reading a worker's channel: a packet is too long");
    }
    received.kind = static_cast<Packet>(buffer_.front());
    received.payload = std::span(buffer_).subspan(1, static_cast<std::size_t>(got) - 1);
    return std::optional<Received>(std::move(received));
  }
}

} // namespace modeld::daemon
