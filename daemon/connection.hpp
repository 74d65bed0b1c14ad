// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/session.hpp"

#include <boost/asio/strand.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <chrono>
#include <memory>
#include <optional>

// The inside of a session, shared by the files that write the kinds of answers.

namespace modeld::daemon {

/// State of one connection. Every member function runs on the strand.
struct Connection : std::enable_shared_from_this<Connection> {
  using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
  static constexpr std::size_t k_read_piece = 4096;

  Connection(Session::Socket socket, Peer who, std::uint64_t id, SessionShared& all)
      : stream(std::move(socket)), peer(who), number(id), shared(all) {
    ++shared.connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void read_next();
  void read_request();
  void on_request(const boost::beast::error_code& error);
  bool answer_at_once();
  void send_at_once(std::string text);
  void respond(Response answer);
  boost::beast::http::response_header<> header() const;
  /// The answer is out, or cannot be.
  void written(const boost::beast::error_code& error);

  Stream stream;
  const Peer peer;
  const std::uint64_t number;
  SessionShared& shared;
  boost::beast::flat_buffer buffer;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser;
  Response response;
  std::chrono::steady_clock::time_point started;
  bool keep_alive = true;
  bool held = false;      ///< a lease hangs on it
  bool head_only = false; ///< the request was a HEAD
};

/// Answer with connection->response, whose body is of that kind.
void start_events(std::shared_ptr<Connection> connection);
void start_file(std::shared_ptr<Connection> connection);
void send_with_descriptor(
    std::shared_ptr<Connection> connection,
    std::shared_ptr<boost::beast::http::response<boost::beast::http::string_body>> message);

} // namespace modeld::daemon
