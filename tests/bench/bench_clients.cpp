// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// Many clients, each on a connection of its own, ask a running daemon for the path of a model that
// is here. Each asks so many times a second, spread evenly, so the times are the daemon's and not
// those of a queue that the measurement made. With 0 each asks again as soon as it was answered:
// then all of them always wait, and a time is the number of clients by the requests a second.
//   bench_clients SOCKET REF [CLIENTS] [SECONDS] [ASKS_A_SECOND]

namespace {

using Clock = std::chrono::steady_clock;

struct Connection {
  int fd = -1;
  Clock::time_point due; ///< when it was to ask: waiting for a slow measurement counts too
  bool waiting = false;
  std::size_t left = 0; ///< bytes of the body that are to come
  bool in_body = false;
  std::string head;
};

[[noreturn]] void die(std::string_view what) {
  std::fprintf(stderr, "error: %.*s: %s\n", static_cast<int>(what.size()), what.data(),
               std::strerror(errno));
  std::exit(1);
}

int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof(address.sun_path)) die("the socket's path is too long");
  std::strcpy(address.sun_path, path);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return fd;
    ::close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(10)); // the kernel's queue is full
  }
  die("connecting");
}

/// Takes what arrived; true where the answer is whole.
bool take(Connection& connection, std::string_view bytes) {
  if (!connection.in_body) {
    connection.head += bytes;
    const auto end = connection.head.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    if (!connection.head.starts_with("HTTP/1.1 200")) {
      std::fprintf(stderr, "error: %s\n", connection.head.c_str());
      std::exit(1);
    }
    const auto at = connection.head.find("Content-Length: ");
    const std::size_t length = std::strtoul(connection.head.c_str() + at + 16, nullptr, 10);
    const std::size_t here = connection.head.size() - end - 4;
    connection.in_body = true;
    connection.left = length - here;
    connection.head.clear();
  } else {
    connection.left -= bytes.size();
  }
  if (connection.left > 0) return false;
  connection.in_body = false;
  return true;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_clients SOCKET REF [CLIENTS] [SECONDS] [ASKS_A_SECOND]\n");
    return 2;
  }
  const std::size_t clients = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1000;
  const std::size_t seconds = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 10;
  const std::size_t asks = argc > 5 ? std::strtoul(argv[5], nullptr, 10) : 1;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const std::string body = fmt::format(R"({{"ref":"{}"}})", argv[2]);
  const std::string request =
      fmt::format("POST /v1/variants HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body);
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Connection> all(clients);
  for (std::size_t i = 0; i < clients; ++i) {
    all[i].fd = connect_to(argv[1]);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    ::epoll_ctl(poll, EPOLL_CTL_ADD, all[i].fd, &event);
  }
  std::vector<double> times;
  const auto ask = [&](Connection& connection, Clock::time_point due) {
    connection.due = due;
    connection.waiting = true;
    const auto size = static_cast<ssize_t>(request.size());
    if (::write(connection.fd, request.data(), request.size()) != size) die("asking");
  };
  const auto start = Clock::now();
  const auto end = start + std::chrono::seconds(seconds);
  const Clock::duration gap = std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(1)) /
                              static_cast<long>(clients * std::max<std::size_t>(asks, 1));
  const std::size_t wanted = asks == 0 ? clients : clients * asks * seconds;
  std::size_t sent = 0;
  std::size_t waiting = 0;
  std::vector<char> buffer(1U << 16);
  while (sent < wanted || waiting > 0) {
    while (sent < wanted && (asks == 0 || start + gap * static_cast<long>(sent) <= Clock::now())) {
      Connection& next = all[sent % clients];
      if (next.waiting) break; // an answer that takes longer than its turn
      ask(next, asks == 0 ? Clock::now() : start + gap * static_cast<long>(sent));
      ++sent;
      ++waiting;
    }
    std::array<epoll_event, 64> events{};
    const auto next_due = start + gap * static_cast<long>(sent);
    const auto rest = std::clamp<Clock::duration>(next_due - Clock::now(), Clock::duration::zero(),
                                                  std::chrono::milliseconds(10));
    const timespec wait{0, std::chrono::duration_cast<std::chrono::nanoseconds>(rest).count()};
    const int ready =
        ::epoll_pwait2(poll, events.data(), static_cast<int>(events.size()), &wait, nullptr);
    for (int i = 0; i < ready; ++i) {
      Connection& connection = all[events[static_cast<std::size_t>(i)].data.u64];
      const ssize_t got = ::read(connection.fd, buffer.data(), buffer.size());
      if (got <= 0) die("reading an answer");
      if (!take(connection, {buffer.data(), static_cast<std::size_t>(got)})) continue;
      const auto now = Clock::now();
      times.push_back(std::chrono::duration<double>(now - connection.due).count());
      connection.waiting = false;
      if (asks == 0 && now < end) {
        ask(connection, now);
      } else {
        --waiting;
      }
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  std::sort(times.begin(), times.end());
  std::printf("%zu clients, %s: %.0f requests a second, p50 %.0f us, p99 %.0f us, most %.0f us\n",
              clients, asks == 0 ? "each asking again at once" : "spread evenly",
              static_cast<double>(times.size()) / took, times[times.size() / 2] * 1e6,
              times[times.size() * 99 / 100] * 1e6, times.back() * 1e6);
  return 0;
}
