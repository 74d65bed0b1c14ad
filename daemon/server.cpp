// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.hpp"

#include "daemon/log.hpp"

#include <boost/asio/strand.hpp>

namespace modeld::daemon {
namespace {

// When there is no room for a connection, or no descriptor left for it.
constexpr std::chrono::milliseconds k_pause{50};

} // namespace

Server::Server(const Config::Server& limits, const Router& router, Metrics& metrics,
               std::function<void(std::uint64_t)> on_closed)
    : handlers_(limits.handler_threads), shared_{limits, router, metrics, handlers_,
                                                 std::move(on_closed)},
      acceptor_(io_), pause_(io_) {}

Server::~Server() {
  stop();
}

Result<void> Server::start(ListeningSocket socket) {
  boost::system::error_code ec;
  const int fd = socket.release();
  name_.emplace(std::move(socket));
  acceptor_.assign(boost::asio::local::stream_protocol(), fd, ec);
  if (ec) return fail(from_errno(ec.value(), "listening"));
  accept();
  for (std::uint64_t i = 0; i < shared_.limits.io_threads; ++i) {
    threads_.emplace_back([this] { io_.run(); });
  }
  return {};
}

void Server::accept() {
  if (shared_.connections >= shared_.limits.max_connections) {
    pause_.expires_after(k_pause);
    pause_.async_wait([this](const auto& error) {
      if (!error) accept();
    });
    return;
  }
  acceptor_.async_accept(boost::asio::make_strand(io_),
                         [this](const auto& error, Session::Socket socket) {
                           if (error == boost::asio::error::operation_aborted) return;
                           if (!error) {
                             accepted(std::move(socket));
                             return accept();
                           }
                           log_warning("accepting a connection: {}", error.message());
                           pause_.expires_after(k_pause);
                           pause_.async_wait([this](const auto& stopped) {
                             if (!stopped) accept();
                           });
                         });
}

void Server::accepted(Session::Socket socket) {
  const auto peer = peer_of(socket.native_handle());
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
