// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/config.hpp"
#include "daemon/http.hpp"
#include "daemon/metrics.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace modeld::daemon {

/// What all sessions share. Outlives them; members are safe from any thread.
struct SessionShared {
  const Config::Server& limits;
  std::function<Response(Request)> handle; ///< on a handler thread; any number at once
  Metrics& metrics;
  boost::asio::thread_pool& handlers;           ///< where handlers run and files are read
  std::function<void(std::uint64_t)> on_closed; ///< a connection is gone; on a handler thread
  /// JSON that is in memory, as an answer without a way through the pool; on an I/O thread, where
  /// nothing may wait. None set: every request goes to `handle`.
  std::function<std::optional<std::string>(const ReadyRequest&)> ready;
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> streams{0};
};

/// One connection: HTTP/1.1, one request after the other, each within its limits. Keeps itself
/// alive until the connection ends. Its work runs on the strand of `socket`; handlers run in the
/// pool of `shared`.
class Session {
public:
  /// Unix or TCP.
  using Socket = boost::asio::generic::stream_protocol::socket;

  static void start(Socket socket, Peer peer, std::uint64_t number, SessionShared& shared);
};

} // namespace modeld::daemon
