// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/hub/http_message.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace modeld::test {

/// How an answer goes out. The defaults send it as it is; the rest is for scripted misbehaviour.
struct SendPlan {
  Answer answer;
  bool close_without_answer = false;        ///< end the connection before the head
  bool stall_before_head = false;           ///< say nothing until the client goes away
  std::optional<std::uint64_t> stall_after; ///< body bytes, then silence on an open connection
  std::optional<std::uint64_t> close_after; ///< body bytes, then the end of the connection
  bool reset = false;                       ///< end connections by RST instead of FIN
  std::optional<std::uint64_t> flip_at;     ///< body byte that is sent inverted
  std::uint64_t bytes_per_second = 0;       ///< 0: as fast as it goes
  std::atomic<int>* stalling = nullptr;     ///< counts connections that are silent on purpose
};

/// One accepted connection, plain or TLS, served by one thread with blocking calls.
class Connection {
public:
  using Socket = boost::asio::ip::tcp::socket;

  /// `tls` may be null. `stopping` ends stalls.
  Connection(Socket socket, boost::asio::ssl::context* tls, const std::atomic<bool>& stopping);

  /// The TLS handshake, where there is one; false ends the connection.
  bool open();
  /// Reads one whole request; nothing at the end of the connection or for something that is not
  /// HTTP. `raw` receives every byte that was read for it.
  std::optional<Request> read(std::string& raw);
  /// Sends; false when the connection is to be closed.
  bool send(const Request& request, const SendPlan& plan);
  /// Any thread: makes blocked calls return.
  void abort();
  /// Says goodbye: FIN, and waits a second for the client's; or prepares close() to send RST.
  void finish(bool reset);
  void close();
  std::uint64_t body_bytes_sent() const { return sent_; }

private:
  std::size_t read_some(char* data, std::size_t size);
  bool write(std::string_view bytes);
  bool send_body(std::string_view body, const SendPlan& plan);
  void stall(const SendPlan& plan);

  Socket socket_;
  std::unique_ptr<boost::asio::ssl::stream<Socket&>> tls_;
  const std::atomic<bool>& stopping_;
  std::string pending_; ///< read, but not yet part of a request
  std::uint64_t sent_ = 0;
};

} // namespace modeld::test
