// SPDX-License-Identifier: Apache-2.0
#include "daemon/connection.hpp"
#include "daemon/log.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <vector>

namespace modeld::daemon {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t k_piece = 256U << 10;

// The next bytes of a body that is no text; none where they cannot be had.
std::size_t next_bytes(Response& response, std::span<std::byte> into) {
  if (auto* stream = std::get_if<StreamBody>(&response.body)) {
    const auto got = stream->read(into);
    if (!got) log_warning("sending an answer: {}", got.error().message);
    return got.value_or(0);
  }
  auto& file = std::get<FileBody>(response.body);
  const ssize_t got =
      ::pread(file.file.get(), into.data(), into.size(), static_cast<off_t>(file.offset));
  if (got > 0) file.offset += static_cast<std::uint64_t>(got);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::uint64_t size_of(const Response& response) {
  const auto* stream = std::get_if<StreamBody>(&response.body);
  return stream != nullptr ? stream->size : std::get<FileBody>(response.body).size;
}

// Sends a body piece by piece: read in the handler pool, write on the strand, one after the other.
struct FileSender : std::enable_shared_from_this<FileSender> {
  explicit FileSender(std::shared_ptr<Connection> to)
      : connection(std::move(to)), message(connection->header()), serializer(message),
        left(size_of(connection->response)) {}

  void start() {
    message.content_length(left);
    connection->stream.expires_after(connection->shared.limits.write_timeout);
    http::async_write_header(
        connection->stream, serializer,
        [self = shared_from_this()](const auto& error, std::size_t) { self->next(error); });
  }

  void next(const boost::beast::error_code& error) {
    if (error || left == 0 || connection->head_only) return connection->written(error);
    boost::asio::post(connection->shared.handlers, [self = shared_from_this()] { self->read(); });
  }

  void read() {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(k_piece, left)));
    piece.resize(next_bytes(connection->response, piece));
    boost::asio::post(connection->stream.get_executor(),
                      [self = shared_from_this()] { self->write(); });
  }

  // The length is promised: where bytes are missing, only the end of the connection tells so.
  void write() {
    if (piece.empty()) {
      connection->keep_alive = false;
      return connection->written(make_error_code(boost::system::errc::io_error));
    }
    left -= piece.size();
    connection->stream.expires_after(connection->shared.limits.write_timeout);
    boost::asio::async_write(
        connection->stream, boost::asio::buffer(piece),
        [self = shared_from_this()](const auto& error, std::size_t) { self->next(error); });
  }

  std::shared_ptr<Connection> connection;
  http::response<http::empty_body> message;
  http::response_serializer<http::empty_body> serializer;
  std::uint64_t left;
  std::vector<std::byte> piece;
};

// Sends the first bytes together with the descriptor; how many went, or -errno.
ssize_t send_first(int socket, std::string_view bytes, int descriptor) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 ? -errno : sent;
}

} // namespace

void start_file(std::shared_ptr<Connection> connection) {
  std::make_shared<FileSender>(std::move(connection))->start();
}

void send_with_descriptor(std::shared_ptr<Connection> connection,
                          std::shared_ptr<http::response<http::string_body>> message) {
  std::ostringstream out;
  out << *message;
  const auto text = std::make_shared<std::string>(out.str());
  connection->stream.expires_after(connection->shared.limits.write_timeout);
  connection->stream.socket().async_wait(
      boost::asio::socket_base::wait_write, [connection, text](const auto& error) {
        if (error) return connection->written(error);
        const ssize_t sent = send_first(connection->stream.socket().native_handle(), *text,
                                        connection->response.passed.get());
        if (sent < 0) {
          return connection->written(
              boost::beast::error_code(static_cast<int>(-sent), boost::system::system_category()));
        }
        boost::asio::async_write(
            connection->stream, boost::asio::buffer(*text) + static_cast<std::size_t>(sent),
            [connection, text](const auto& failed, std::size_t) { connection->written(failed); });
      });
}

} // namespace modeld::daemon
