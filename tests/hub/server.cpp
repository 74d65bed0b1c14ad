// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/server.hpp"

#include <sys/socket.h>

namespace modeld::test {

using boost::asio::ip::tcp;

Server::Server(const std::string& address, std::uint16_t port, boost::asio::ssl::context* tls)
    : acceptor_(io_, tcp::endpoint(boost::asio::ip::make_address(address), port)), tls_(tls),
      port_(acceptor_.local_endpoint().port()) {}

Server::~Server() {
  stop();
}

void Server::start(Handler handler) {
  handler_ = std::move(handler);
  acceptor_thread_ = std::thread([this] { accept(); });
}

void Server::stop() {
  if (stopping_.exchange(true)) return;
  ::shutdown(acceptor_.native_handle(), SHUT_RDWR); // wakes accept()
  if (acceptor_thread_.joinable()) acceptor_thread_.join();
  {
    const std::lock_guard lock(mutex_);
    for (Worker& worker : workers_) {
      if (!worker.finished) worker.connection->abort();
    }
  }
  for (Worker& worker : workers_) {
    worker.thread.join();
  }
  workers_.clear();
}

void Server::accept() {
  while (!stopping_) {
    boost::system::error_code ec;
    tcp::socket socket(io_);
    acceptor_.accept(socket, ec);
    if (stopping_) return;
    if (ec) continue;
    reap();
    const std::lock_guard lock(mutex_);
    Worker& worker = workers_.emplace_back();
    worker.connection = std::make_unique<Connection>(std::move(socket), tls_, stopping_);
    worker.thread = std::thread([this, &worker, number = ++count_] { serve(worker, number); });
  }
}

void Server::serve(Worker& worker, std::uint64_t number) {
  Connection& connection = *worker.connection;
  bool reset = false;
  bool go_on = connection.open();
  while (go_on && !stopping_) {
    std::string raw;
    auto request = connection.read(raw);
    if (!request) break;
    request->connection = number;
    ++answering_;
    const SendPlan plan = handler_(*request, raw);
    go_on = connection.send(*request, plan);
    --answering_;
    reset = plan.reset && !go_on;
  }
  connection.finish(reset);
  const std::lock_guard lock(mutex_); // stop() must not use a descriptor that is someone else's
  connection.close();
  worker.finished = true;
}

void Server::reap() {
  const std::lock_guard lock(mutex_);
  for (auto it = workers_.begin(); it != workers_.end();) {
    if (!it->finished) {
      ++it;
      continue;
    }
    it->thread.join();
    it = workers_.erase(it);
  }
}

} // namespace modeld::test
