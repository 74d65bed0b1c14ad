// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace modeld::test {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t k_chunk = 256 << 10;
constexpr std::uint32_t k_max_head = 256 << 10;
constexpr std::uint64_t k_max_body = 64 << 20;
constexpr int k_poll_ms = 20;
constexpr int k_drain_polls = 50;

Request to_request(const http::request<http::string_body>& message) {
  Request request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    request.headers.emplace_back(field.name_string(), field.value());
  }
  request.body = message.body();
  request.keep_alive = message.keep_alive();
  return request;
}

} // namespace

Connection::Connection(Socket socket, asio::ssl::context* tls, const std::atomic<bool>& stopping)
    : socket_(std::move(socket)), stopping_(stopping) {
  boost::system::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (tls != nullptr) tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *tls);
}

bool Connection::open() {
  boost::system::error_code ec;
  if (tls_) tls_->handshake(asio::ssl::stream_base::server, ec);
  return !ec;
}

std::optional<Request> Connection::read(std::string& raw) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(k_max_head);
  parser.body_limit(k_max_body);
  parser.eager(true);
  while (!parser.is_done()) {
    boost::system::error_code ec;
    const std::size_t used = parser.put(asio::buffer(pending_), ec);
    raw.append(pending_, 0, used);
    pending_.erase(0, used);
    if (parser.is_done()) break;
    if (ec && ec != http::error::need_more) return std::nullopt;
    std::array<char, 16384> more;
    const std::size_t count = read_some(more.data(), more.size());
    if (count == 0) return std::nullopt;
    pending_.append(more.data(), count);
  }
  return to_request(parser.get());
}

bool Connection::send(const Request& request, const SendPlan& plan) {
  sent_ = 0;
  if (plan.stall_before_head) stall(plan);
  if (plan.stall_before_head || plan.close_without_answer) return false;
  if (!write(plan.answer.head())) return false;
  const bool bodiless = request.method == "HEAD" || plan.answer.status == 304;
  if (!bodiless && !send_body(plan.answer.body(), plan)) return false;
  return request.keep_alive && plan.answer.announce_length;
}

bool Connection::send_body(std::string_view body, const SendPlan& plan) {
  const std::uint64_t end =
      std::min<std::uint64_t>(body.size(), std::min(plan.close_after.value_or(body.size()),
                                                    plan.stall_after.value_or(body.size())));
  const std::size_t chunk =
      plan.bytes_per_second == 0
          ? k_chunk
          : std::clamp<std::size_t>(static_cast<std::size_t>(plan.bytes_per_second / 50), 1,
                                    k_chunk);
  std::string flipped;
  while (sent_ < end) {
    std::string_view part = body.substr(sent_, std::min<std::uint64_t>(chunk, end - sent_));
    if (plan.flip_at && *plan.flip_at >= sent_ && *plan.flip_at < sent_ + part.size()) {
      flipped = part;
      char& victim = flipped[static_cast<std::size_t>(*plan.flip_at - sent_)];
      victim = static_cast<char>(~victim);
      part = flipped;
    }
    if (!write(part)) return false;
    sent_ += part.size();
    if (plan.bytes_per_second != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(
          static_cast<std::uint64_t>(part.size()) * 1'000'000 / plan.bytes_per_second));
    }
  }
  if (plan.stall_after) stall(plan);
  return !plan.stall_after && !plan.close_after;
}

std::size_t Connection::read_some(char* data, std::size_t size) {
  boost::system::error_code ec;
  const auto buffer = asio::buffer(data, size);
  const std::size_t count = tls_ ? tls_->read_some(buffer, ec) : socket_.read_some(buffer, ec);
  return ec ? 0 : count;
}

bool Connection::write(std::string_view bytes) {
  boost::system::error_code ec;
  const auto buffer = asio::buffer(bytes.data(), bytes.size());
  if (tls_) {
    asio::write(*tls_, buffer, ec);
  } else {
    asio::write(socket_, buffer, ec);
  }
  return !ec;
}

/// Silent on an open connection until the client leaves or the Hub stops.
void Connection::stall(const SendPlan& plan) {
  if (plan.stalling != nullptr) ++*plan.stalling;
  pollfd entry{socket_.native_handle(), POLLRDHUP, 0};
  while (!stopping_ && poll(&entry, 1, k_poll_ms) == 0) {
  }
  if (plan.stalling != nullptr) --*plan.stalling;
}

void Connection::abort() {
  ::shutdown(socket_.native_handle(), SHUT_RDWR);
}

void Connection::finish(bool reset) {
  boost::system::error_code ignored;
  if (reset) {
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    return;
  }
  // A close with unread input would turn into a reset and could cost the client our last bytes.
  socket_.shutdown(Socket::shutdown_send, ignored);
  pollfd entry{socket_.native_handle(), POLLIN, 0};
  std::array<char, 4096> rest;
  for (int i = 0; i < k_drain_polls && !stopping_; ++i) {
    if (poll(&entry, 1, k_poll_ms) > 0 && socket_.read_some(asio::buffer(rest), ignored) == 0)
      return;
  }
}

void Connection::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

} // namespace modeld::test
