// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.hpp"

#include "daemon/log.hpp"

#include <boost/asio/strand.hpp>
#include <fmt/format.h>

#include <charconv>

namespace modeld::daemon {
namespace {

// When there is no room for a connection, or no descriptor left for it.
constexpr std::chrono::milliseconds k_pause{50};

// Over TCP the kernel does not say who is at the other end.
constexpr Peer k_anybody{65534, 65534, 0};

Result<boost::asio::ip::tcp::endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  std::string host(text.substr(0, std::min(colon, text.size())));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code ec;
  const auto address = boost::asio::ip::make_address(host, ec);
  std::uint16_t port = 0;
  const std::string_view digits =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size();
  if (ec || !address.is_loopback() || digits.empty() || !whole) {
    return fail(Errc::invalid_argument,
                fmt::format("listening at '{}': allowed are 127.0.0.1:PORT and [::1]:PORT", text),
                "who asks over TCP is not known, so the port is for this machine only");
  }
  return boost::asio::ip::tcp::endpoint(address, port);
}

} // namespace

Server::Server(const Config::Server& limits, Metrics& metrics,
               std::function<Response(Request)> handle,
               std::function<void(std::uint64_t)> on_closed)
    : handlers_(limits.handler_threads), shared_{limits,    std::move(handle),    metrics,
                                                 handlers_, std::move(on_closed), {}},
      local_(io_), tcp_(io_), pause_(io_) {}

Server::~Server() {
  stop();
}

void Server::answer_at_once(std::function<std::optional<std::string>(const ReadyRequest&)> ready) {
  shared_.ready = std::move(ready);
}

Result<void> Server::start(ListeningSocket socket) {
  boost::system::error_code ec;
  const int fd = socket.release();
  name_.emplace(std::move(socket));
  local_.assign(boost::asio::local::stream_protocol(), fd, ec);
  if (ec) return fail(from_errno(ec.value(), "listening"));
  accept(local_);
  run();
  return {};
}

Result<std::uint16_t> Server::start_loopback(const std::string& text) {
  MODELD_ASSIGN(const auto endpoint, parse_endpoint(text));
  boost::system::error_code ec;
  tcp_.open(endpoint.protocol(), ec);
  if (!ec) tcp_.set_option(boost::asio::socket_base::reuse_address(true), ec);
  if (!ec) tcp_.bind(endpoint, ec);
  if (!ec) tcp_.listen(boost::asio::socket_base::max_listen_connections, ec);
  if (ec) return fail(from_errno(ec.value(), fmt::format("listening at '{}'", text)));
  const std::uint16_t port = tcp_.local_endpoint(ec).port();
  accept(tcp_);
  run();
  return port;
}

void Server::run() {
  for (std::uint64_t i = 0; i < shared_.limits.io_threads; ++i) {
    threads_.emplace_back([this] { io_.run(); });
  }
}

template <class Acceptor>
void Server::accept_later(Acceptor& acceptor) {
  pause_.expires_after(k_pause);
  pause_.async_wait([this, &acceptor](const auto& stopped) {
    if (!stopped) accept(acceptor);
  });
}

template <class Acceptor>
void Server::accept(Acceptor& acceptor) {
  if (shared_.connections >= shared_.limits.max_connections) return accept_later(acceptor);
  acceptor.async_accept(boost::asio::make_strand(io_),
                        [this, &acceptor](const auto& error, auto socket) {
                          if (error == boost::asio::error::operation_aborted) return;
                          if (error) {
                            log_warning("accepting a connection: {}", error.message());
                            return accept_later(acceptor);
                          }
                          accepted(std::move(socket), std::is_same_v<Acceptor, LocalAcceptor>);
                          accept(acceptor);
                        });
}

void Server::accepted(Session::Socket socket, bool local) {
  const auto peer = local ? peer_of(socket.native_handle()) : Result<Peer>(k_anybody);
  if (!peer) return log_warning("accepting a connection: {}", peer.error().message);
  Session::start(std::move(socket), *peer, next_number_++, shared_);
}

void Server::stop() {
  name_.reset(); // first the name, so that clients see at once that nobody is there
  io_.stop();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
  handlers_.stop();
  handlers_.join();
}

} // namespace modeld::daemon
