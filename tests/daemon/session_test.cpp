// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.hpp"

#include "daemon/client.hpp"
#include "daemon/client_connection.hpp"
#include "daemon/job.hpp"
#include "daemon/router.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <future>
#include <thread>

using namespace modeld;
using namespace modeld::daemon;
using Catch::Contains;
using Catch::StartsWith;

namespace {

struct Fixture {
  test::TempDir dir;
  Config::Server limits;
  Router router;
  Metrics metrics;
  std::atomic<std::uint64_t> closed{0};
  std::shared_ptr<Job> job = std::make_shared<Job>("j1", JobRequest{}, 1);
  std::unique_ptr<Server> server;

  Fixture() {
    limits.max_header = 2048;
    limits.max_body = 1024;
    limits.progress_interval = std::chrono::milliseconds(20);
    std::ofstream(dir / "file") << std::string(1'000'000, 'x') << "end";
    router.add("GET", "/hello", [](const Request& request) -> Result<Response> {
      return Response::text("hello " + std::to_string(request.peer.pid), "text/plain");
    });
    router.add("POST", "/echo", [](const Request& request) -> Result<Response> {
      return Response::text(request.body, "text/plain");
    });
    router.add("GET", "/file", [this](const Request&) -> Result<Response> {
      Response response;
      response.body = FileBody{open_file(), 10, 999'993};
      return response;
    });
    router.add("GET", "/descriptor", [this](const Request&) -> Result<Response> {
      Response response = Response::json({{"a", 1}});
      response.passed = open_file();
      return response;
    });
    router.add("GET", "/v1/jobs/j1/events", [this](const Request&) -> Result<Response> {
      Response response;
      response.content_type = "text/event-stream";
      response.body = EventBody{job, 0};
      return response;
    });
  }

  Descriptor open_file() { return Descriptor(::open((dir / "file").c_str(), O_RDONLY)); }
  std::string path() const { return (dir / "sock").string(); }

  using Ready = std::function<std::optional<std::string>(const ReadyRequest&)>;
  void start(Ready ready = {}) {
    server = std::make_unique<Server>(
        limits, metrics, [this](Request request) { return router.handle(std::move(request)); },
        [this](std::uint64_t) { ++closed; });
    server->answer_at_once(std::move(ready));
    auto socket = ListeningSocket::open(path(), 0600);
    REQUIRE(socket);
    REQUIRE(server->start(*std::move(socket)));
  }

  UnixConnection connect() {
    auto connection = UnixConnection::open(path());
    REQUIRE(connection);
    return *std::move(connection);
  }

  // Everything that comes until the end of the connection.
  std::string talk(const std::string& text) {
    UnixConnection connection = connect();
    REQUIRE(connection.write(text));
    return rest(connection);
  }

  static std::string rest(UnixConnection& connection) {
    std::string out;
    while (true) {
      const auto piece = connection.read();
      if (!piece || piece->empty()) return out;
      out += *piece;
    }
  }
};

constexpr const char* k_close = "Connection: close\r\n\r\n";

} // namespace

TEST_CASE("a session answers one request after the other, and knows who asks",
          "[daemon][session]") {
  Fixture f;
  f.start();
  const std::string both = "GET /hello HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\n";
  const std::string answer = f.talk(both + k_close);
  const std::string expected = "hello " + std::to_string(::getpid());
  CHECK_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  const auto first = answer.find(expected);
  REQUIRE(first != std::string::npos);
  CHECK(answer.find(expected, first + 1) != std::string::npos);
  CHECK(test::wait_until([&] { return f.closed == 1; }));
}

TEST_CASE("a session gives what is in memory at once, although every handler is busy",
          "[daemon][session]") {
  Fixture f;
  f.limits.handler_threads = 1;
  f.start([](const ReadyRequest& request) -> std::optional<std::string> {
    if (request.method != "POST" || request.target != "/echo") return std::nullopt;
    return "known: " + std::string(request.body);
  });
  std::promise<void> free;
  f.router.add("GET", "/slow", [&free](const Request&) -> Result<Response> {
    free.get_future().wait();
    return Response::text("slow", "text/plain");
  });
  UnixConnection slow = f.connect();
  REQUIRE(slow.write("GET /slow HTTP/1.1\r\n" + std::string(k_close)));
  const std::string ask = "POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\n";
  UnixConnection quick = f.connect();
  std::string many;
  constexpr int k_many = 5000; // more than a buffer, and than a stack would hold
  for (int i = 0; i < k_many; ++i) {
    many += ask + (i + 1 < k_many ? "one" : "two");
  }
  std::thread writer([&] { CHECK(quick.write(many)); });
  std::string answers;
  while (answers.find("known: two") == std::string::npos) {
    const auto piece = quick.read();
    REQUIRE(piece);
    REQUIRE_FALSE(piece->empty());
    answers += *piece;
  }
  writer.join();
  int ones = 0;
  for (auto at = answers.find("known: one"); at != std::string::npos; ++ones) {
    at = answers.find("known: one", at + 1);
  }
  CHECK(ones == k_many - 1);
  free.set_value();
  CHECK_THAT(f.rest(slow), Contains("slow"));
}

TEST_CASE("a session holds requests to their limits", "[daemon][session][rule-6]") {
  Fixture f;
  f.start();
  CHECK_THAT(f.talk("GET /hello HTTP/1.1\r\nX: " + std::string(3000, 'x') + "\r\n\r\n"),
             StartsWith("HTTP/1.1 431 "));
  CHECK_THAT(f.talk("POST /echo HTTP/1.1\r\nContent-Length: 2000\r\n\r\n"),
             StartsWith("HTTP/1.1 413 "));
  CHECK_THAT(f.talk("nonsense\r\n\r\n"),
             StartsWith("HTTP/1.1 400 ") && Contains("application/problem+json"));
  CHECK_THAT(f.talk("POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
             StartsWith("HTTP/1.1 400 "));
  CHECK_THAT(f.talk("POST /echo HTTP/1.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
             Contains("\r\n\r\nhello"));
}

TEST_CASE("a session ends a client that does not go on", "[daemon][session][rule-6]") {
  Fixture f;
  f.limits.header_timeout = std::chrono::milliseconds(100);
  f.limits.idle_timeout = std::chrono::milliseconds(100);
  f.start();
  UnixConnection silent = f.connect();
  CHECK(Fixture::rest(silent).empty());
  UnixConnection slow = f.connect();
  REQUIRE(slow.write("GET /hello HT"));
  CHECK(Fixture::rest(slow).empty());
}

TEST_CASE("a session sends a part of a file", "[daemon][session]") {
  Fixture f;
  f.start();
  const std::string answer = f.talk(std::string("GET /file HTTP/1.1\r\n") + k_close);
  CHECK_THAT(answer, Contains("Content-Length: 999993\r\n"));
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  CHECK(body.size() == 999'993);
  CHECK(body.ends_with("xend"));
}

TEST_CASE("a session passes a descriptor with the first byte of the answer",
          "[daemon][session][lease]") {
  Fixture f;
  f.start();
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, f.path().c_str(), sizeof(address.sun_path) - 1);
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
          0);
  const std::string request = std::string("GET /descriptor HTTP/1.1\r\n") + k_close;
  REQUIRE(::send(socket.get(), request.data(), request.size(), 0) ==
          static_cast<ssize_t>(request.size()));
  std::array<char, 4096> bytes;
  alignas(cmsghdr) std::array<char, 256> control{};
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  REQUIRE(::recvmsg(socket.get(), &message, 0) > 0);
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  REQUIRE(head != nullptr);
  REQUIRE(head->cmsg_type == SCM_RIGHTS);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
  const Descriptor passed(fd);
  char last[3] = {};
  CHECK(::pread(passed.get(), last, 3, 1'000'000) == 3);
  CHECK(std::string(last, 3) == "end");
  CHECK(::write(passed.get(), "x", 1) < 0); // read-only
}

TEST_CASE("a session streams a job's events to its end", "[daemon][session][sse]") {
  Fixture f;
  f.start();
  f.job->set_running();
  Client client(f.path(), {});
  const Interrupt interrupt;
  std::vector<std::string> told;
  const auto done = client.events("j1", 0, interrupt, [&](const Client::Event& event) {
    if (event.type == "progress" && event.job.done == 50) {
      f.job->finish(boost::json::object{{"x", 1}});
    }
    if (event.type == "progress") return true;
    told.push_back(event.type + " " + event.job.state + " " + event.job.phase);
    if (told.size() == 1) f.job->begin_phase("downloading", 100);
    if (event.job.phase == "downloading") f.job->progress().done = 50;
    return event.type != "end";
  });
  CHECK(done);
  CHECK(told == std::vector<std::string>{"change running ", "change running downloading",
                                         "end done downloading"});
  CHECK(test::wait_until([&] { return f.server->streams() == 0; }));
}

TEST_CASE("a session sends a comment when a stream is silent, and notices a client that left",
          "[daemon][session][sse]") {
  Fixture f;
  f.limits.heartbeat = std::chrono::milliseconds(50);
  f.start();
  {
    UnixConnection watcher = f.connect();
    REQUIRE(watcher.write("GET /v1/jobs/j1/events HTTP/1.1\r\n\r\n"));
    std::string got;
    while (got.find(": still here") == std::string::npos) {
      const auto piece = watcher.read();
      REQUIRE(piece);
      REQUIRE_FALSE(piece->empty());
      got += *piece;
    }
    CHECK(f.server->streams() == 1);
  }
  CHECK(test::wait_until([&] { return f.server->streams() == 0; }));
}

TEST_CASE("ListeningSocket replaces a socket that is left over, and nothing else",
          "[daemon][listener]") {
  test::TempDir dir;
  const std::string path = (dir / "sock").string();
  {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const Descriptor dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  }
  {
    const auto socket = ListeningSocket::open(path, 0640);
    REQUIRE(socket);
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::mask) ==
          std::filesystem::perms(0640));
    const auto second = ListeningSocket::open(path, 0640);
    REQUIRE_FALSE(second);
    CHECK(second.error().code == Errc::conflict);
  }
  CHECK_FALSE(std::filesystem::exists(path)); // removed at the end
  std::ofstream(path) << "precious";
  const auto refused = ListeningSocket::open(path, 0640);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::conflict);
  CHECK(std::filesystem::file_size(path) == 8);
  CHECK_FALSE(ListeningSocket::open(std::string(200, 'x'), 0640));
}
