// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/proxy.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace modeld::test {
namespace {

constexpr int k_poll_ms = 20;

bool send_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// "host:port" or "[::1]:port"; -1 where nobody answers there.
int dial(std::string authority) {
  const auto colon = authority.rfind(':');
  if (colon == std::string::npos) return -1;
  const std::string port = authority.substr(colon + 1);
  std::string host = authority.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), nullptr, &found) != 0) return -1;
  int out = -1;
  for (const addrinfo* one = found; one != nullptr && out < 0; one = one->ai_next) {
    out = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (out >= 0 && ::connect(out, one->ai_addr, one->ai_addrlen) != 0) {
      ::close(out);
      out = -1;
    }
  }
  ::freeaddrinfo(found);
  return out;
}

/// Copies what is there; false at the end of the stream.
bool pass(int from, int to) {
  std::array<char, 65536> bytes{};
  const ssize_t n = ::recv(from, bytes.data(), bytes.size(), 0);
  return n > 0 && send_all(to, {bytes.data(), static_cast<std::size_t>(n)});
}

} // namespace

TestProxy::TestProxy() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("a proxy cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept(); });
}

TestProxy::~TestProxy() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& worker : workers_) {
    worker.join();
  }
  ::close(listener_);
}

std::string TestProxy::address() const {
  return "http://127.0.0.1:" + std::to_string(port_);
}

std::vector<std::string> TestProxy::heads() const {
  const std::lock_guard lock(mutex_);
  return heads_;
}

void TestProxy::forget() {
  const std::lock_guard lock(mutex_);
  heads_.clear();
}

void TestProxy::accept() {
  while (!stopping_) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const std::lock_guard lock(mutex_);
    workers_.emplace_back([this, client] { serve(client); });
  }
}

void TestProxy::serve(int client) {
  std::string head;
  std::array<char, 4096> bytes{};
  while (head.find("\r\n\r\n") == std::string::npos) {
    pollfd entry{client, POLLIN, 0};
    if (stopping_) break;
    if (::poll(&entry, 1, k_poll_ms) == 0) continue;
    const ssize_t n = ::recv(client, bytes.data(), bytes.size(), 0);
    if (n <= 0) break;
    head.append(bytes.data(), static_cast<std::size_t>(n));
  }
  const auto space = head.find(' ');
  int server = -1;
  if (space != std::string::npos) {
    {
      const std::lock_guard lock(mutex_);
      heads_.push_back(head);
    }
    if (head.starts_with("CONNECT ")) {
      server = dial(head.substr(space + 1, head.find(' ', space + 1) - space - 1));
      if (server >= 0) send_all(client, "HTTP/1.1 200 Connection established\r\n\r\n");
    } else if (head.compare(space + 1, 7, "http://") == 0) {
      const auto path = head.find('/', space + 8);
      server = dial(head.substr(space + 8, path - space - 8));
      // One request a connection: the next one may be for somebody else.
      const auto line = head.find("\r\n") + 2;
      if (server >= 0) {
        send_all(server, head.substr(0, space + 1) + head.substr(path, line - path) +
                             "Connection: close\r\n" + head.substr(line));
      }
    }
    if (server < 0) send_all(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
  }
  while (server >= 0 && !stopping_) {
    std::array<pollfd, 2> entries{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    if (::poll(entries.data(), entries.size(), k_poll_ms) == 0) continue;
    if (entries[0].revents != 0 && !pass(client, server)) break;
    if (entries[1].revents != 0 && !pass(server, client)) break;
  }
  if (server >= 0) ::close(server);
  ::close(client);
}

} // namespace modeld::test
