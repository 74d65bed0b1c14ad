// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/listener.hpp"
#include "daemon/session.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace modeld::daemon {

/// Accepts connections and moves their bytes on threads of its own. Owned by the daemon; limits,
/// router and metrics outlive it. start() and stop() from one thread.
class Server {
public:
  Server(const Config::Server& limits, const Router& router, Metrics& metrics,
         std::function<void(std::uint64_t)> on_closed);
  ~Server(); ///< stops

  Result<void> start(ListeningSocket socket);
  /// Ends all connections and waits for the handlers that run.
  void stop();

  std::uint64_t connections() const { return shared_.connections; }
  std::uint64_t streams() const { return shared_.streams; }

private:
  using Acceptor = boost::asio::local::stream_protocol::acceptor;
  void accept();
  void accepted(Session::Socket socket);

  boost::asio::thread_pool handlers_;
  SessionShared shared_;
  boost::asio::io_context io_;
  Acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::optional<ListeningSocket> name_;
  std::vector<std::thread> threads_;
  std::uint64_t next_number_ = 1;
};

} // namespace modeld::daemon
