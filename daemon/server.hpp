// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/listener.hpp"
#include "daemon/session.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace modeld::daemon {

/// Accepts connections at one socket and moves their bytes on threads of its own. Owned by the
/// daemon; limits and metrics outlive it. start() and stop() from one thread.
class Server {
public:
  /// `handle` and `on_closed` are called on handler threads, any number at once.
  Server(const Config::Server& limits, Metrics& metrics, std::function<Response(Request)> handle,
         std::function<void(std::uint64_t)> on_closed);
  ~Server(); ///< stops

  /// Before start(): what SessionShared::ready is.
  void answer_at_once(std::function<std::optional<std::string>(const ReadyRequest&)> ready);
  Result<void> start(ListeningSocket socket);
  /// "127.0.0.1:8080" or "[::1]:0": loopback only, since nobody is asked who they are. Gives the
  /// port.
  Result<std::uint16_t> start_loopback(const std::string& address);
  /// Ends all connections and waits for the handlers that run.
  void stop();

  std::uint64_t connections() const { return shared_.connections; }
  std::uint64_t streams() const { return shared_.streams; }

private:
  using LocalAcceptor = boost::asio::local::stream_protocol::acceptor;
  using TcpAcceptor = boost::asio::ip::tcp::acceptor;
  void run();
  template <class Acceptor>
  void accept(Acceptor& acceptor);
  template <class Acceptor>
  void accept_later(Acceptor& acceptor);
  void accepted(Session::Socket socket, bool local);

  boost::asio::thread_pool handlers_;
  SessionShared shared_;
  boost::asio::io_context io_;
  LocalAcceptor local_;
  TcpAcceptor tcp_;
  boost::asio::steady_timer pause_;
  std::optional<ListeningSocket> name_;
  std::vector<std::thread> threads_;
  std::uint64_t next_number_ = 1;
};

} // namespace modeld::daemon
