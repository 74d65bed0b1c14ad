// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/hub/connection.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace modeld::test {

/// One listening origin. A thread accepts, one more serves each connection; stop() (or the
/// destructor) ends all of them and joins.
class Server {
public:
  /// Called on the connection's thread with the request and its raw bytes.
  using Handler = std::function<SendPlan(const Request&, const std::string& raw)>;

  /// Binds at once; throws std::system_error where the address is taken. Port 0 takes a free one.
  Server(const std::string& address, std::uint16_t port, boost::asio::ssl::context* tls);
  ~Server();

  std::uint16_t port() const { return port_; }
  void start(Handler handler);
  void stop();
  std::uint64_t connections() const { return count_; }
  /// Requests that are being answered at the moment.
  int answering() const { return answering_; }

private:
  struct Worker {
    std::thread thread;
    std::atomic<bool> finished{false};
    std::unique_ptr<Connection> connection;
  };

  void accept();
  void serve(Worker& worker, std::uint64_t number);
  void reap();

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ssl::context* tls_;
  std::uint16_t port_;
  Handler handler_;
  std::thread acceptor_thread_;
  std::mutex mutex_; ///< guards workers_
  std::list<Worker> workers_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> count_{0};
  std::atomic<int> answering_{0};
};

} // namespace modeld::test
