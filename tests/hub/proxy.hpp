// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace modeld::test {

/// A proxy on a loopback port: CONNECT for TLS, absolute addresses for plain HTTP. Serves from the
/// constructor to the destructor.
class TestProxy {
public:
  TestProxy();
  ~TestProxy();
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;

  /// "http://127.0.0.1:PORT"
  std::string address() const;
  /// The head of each request, whole; of a tunnel nothing but its CONNECT.
  std::vector<std::string> heads() const;
  void forget();

private:
  void accept();
  void serve(int client);

  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_; ///< guards those below
  std::vector<std::string> heads_;
  std::vector<std::thread> workers_;
  std::thread acceptor_;
};

} // namespace modeld::test
