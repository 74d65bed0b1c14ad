// SPDX-License-Identifier: Apache-2.0
#include "daemon/session.hpp"

#include "daemon/connection.hpp"
#include "daemon/request_message.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <fmt/format.h>

#include <sys/socket.h>

#include <array>

namespace modeld::daemon {
namespace {

namespace http = boost::beast::http;

Request request_on(const Connection& connection, const http::request<http::string_body>& message) {
  Request request = request_of(message);
  request.peer = connection.peer;
  request.connection = connection.number;
  return request;
}

// What a request that cannot be read is told; 0: nothing, the connection just ends.
int status_of(const boost::beast::error_code& error) {
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  const bool broken = error.category() == make_error_code(http::error::end_of_stream).category() &&
                      error != http::error::end_of_stream && error != http::error::partial_message;
  return broken ? 400 : 0;
}

Response unreadable(int status, const boost::beast::error_code& error) {
  Response response = Response::problem(
      {Errc::invalid_argument, "reading the request: " + error.message(), {}, {}, 0});
  response.status = status;
  return response;
}

} // namespace

Connection::~Connection() {
  --shared.connections;
  boost::asio::post(shared.handlers,
                    [closed = shared.on_closed, number = number] { closed(number); });
}

void Session::start(Socket socket, Peer peer, std::uint64_t number, SessionShared& shared) {
  auto connection = std::make_shared<Connection>(std::move(socket), peer, number, shared);
  boost::asio::dispatch(connection->stream.get_executor(),
                        [connection] { connection->read_next(); });
}

// Waits for the first byte without holding the client to the time of a request.
void Connection::read_next() {
  parser.emplace();
  parser->header_limit(static_cast<std::uint32_t>(shared.limits.max_header));
  parser->body_limit(shared.limits.max_body);
  if (buffer.size() > 0) return read_request();
  if (held) {
    stream.expires_never();
  } else {
    stream.expires_after(shared.limits.idle_timeout);
  }
  stream.async_read_some(buffer.prepare(k_read_piece),
                         [self = shared_from_this()](const auto& error, std::size_t bytes) {
                           if (error) return;
                           self->buffer.commit(bytes);
                           self->read_request();
                         });
}

void Connection::read_request() {
  // Most requests are whole by now: nothing to wait for, no timer to set.
  boost::beast::error_code error;
  parser->eager(true);
  buffer.consume(parser->put(buffer.data(), error));
  if (error == http::error::need_more) error = {};
  if (error || parser->is_done()) return on_request(error);
  stream.expires_after(shared.limits.header_timeout);
  http::async_read(
      stream, buffer, *parser,
      [self = shared_from_this()](const auto& failed, std::size_t) { self->on_request(failed); });
}

void Connection::on_request(const boost::beast::error_code& error) {
  started = std::chrono::steady_clock::now();
  if (error) {
    const int status = status_of(error);
    if (status == 0) return;
    keep_alive = false;
    head_only = false;
    return respond(unreadable(status, error));
  }
  keep_alive = parser->get().keep_alive();
  head_only = parser->get().method() == http::verb::head;
  if (answer_at_once()) return;
  // The stream's clock stands still while the handler works.
  stream.expires_never();
  boost::asio::post(shared.handlers, [self = shared_from_this(),
                                      request = request_on(*this, parser->get())]() mutable {
    const std::string method = request.method;
    auto answer = std::make_shared<Response>(self->shared.handle(std::move(request)));
    self->shared.metrics.request(method, answer->status,
                                 std::chrono::steady_clock::now() - self->started);
    boost::asio::post(self->stream.get_executor(),
                      [self, answer] { self->respond(std::move(*answer)); });
  });
}

bool Connection::answer_at_once() {
  if (!shared.ready || head_only || !keep_alive) return false;
  const auto& message = parser->get();
  const std::string_view method(message.method_string().data(), message.method_string().size());
  const auto body = shared.ready(
      {method, {message.target().data(), message.target().size()}, message.body(), peer});
  if (!body) return false;
  shared.metrics.request(method, 200, std::chrono::steady_clock::now() - started);
  send_at_once(fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                           "Server: modeld\r\nContent-Length: {}\r\n\r\n{}",
                           body->size(), *body));
  return true;
}

// What the socket takes now it gets now.
void Connection::send_at_once(std::string text) {
  const ssize_t n = ::send(stream.socket().native_handle(), text.data(), text.size(),
                           MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n == static_cast<ssize_t>(text.size())) {
    if (buffer.size() == 0) return read_next();
    // Requests that came together must not be answered one inside the other.
    return boost::asio::post(stream.get_executor(),
                             [self = shared_from_this()] { self->read_next(); });
  }
  auto rest = std::make_shared<std::string>(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  stream.expires_after(shared.limits.write_timeout);
  boost::asio::async_write(
      stream, boost::asio::buffer(*rest),
      [self = shared_from_this(), rest](const auto& error, std::size_t) { self->written(error); });
}

void Connection::respond(Response answer) {
  response = std::move(answer);
  held = held || response.keeps_connection;
  if (std::holds_alternative<EventBody>(response.body)) return start_events(shared_from_this());
  if (!std::holds_alternative<std::string>(response.body)) return start_file(shared_from_this());
  auto message = std::make_shared<http::response<http::string_body>>(header());
  std::string& body = std::get<std::string>(response.body);
  if (response.status != 304) message->content_length(body.size());
  if (!head_only) message->body() = std::move(body);
  if (response.passed.valid()) return send_with_descriptor(shared_from_this(), message);
  stream.expires_after(shared.limits.write_timeout);
  http::async_write(stream, *message,
                    [self = shared_from_this(), message](const auto& error, std::size_t) {
                      self->written(error);
                    });
}

http::response_header<> Connection::header() const {
  http::response_header<> head;
  head.version(11);
  head.result(static_cast<unsigned>(response.status));
  head.set(http::field::content_type, response.content_type);
  head.set(http::field::server, "modeld");
  for (const auto& [name, value] : response.headers) {
    head.set(name, value);
  }
  if (!keep_alive) head.set(http::field::connection, "close");
  return head;
}

void Connection::written(const boost::beast::error_code& error) {
  response = {};
  if (error) return;
  if (keep_alive) return read_next();
  boost::beast::error_code ignored;
  stream.socket().shutdown(boost::asio::socket_base::shutdown_send, ignored);
}

} // namespace modeld::daemon
