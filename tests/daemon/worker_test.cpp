// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_process.hpp"

#include "daemon/worker_sandbox.hpp"
#include "schema/api.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

using namespace modeld;
using namespace modeld::daemon;
using Catch::Contains;

namespace {

class TextSink final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    for (const std::byte byte : bytes) {
      text += static_cast<char>(byte);
    }
    return {};
  }
  std::string text;
};

WorkerRequest request() {
  WorkerRequest out;
  out.task = WorkerRequest::Task::build;
  out.name = "name";
  out.files = {{"a", 1}, {"b", 2}};
  out.recipe = Recipe::parse_target("Q4_K_M").value();
  out.recipe.pure = true;
  out.threads = 3;
  return out;
}

// What the daemon makes of a worker that does as `act` says.
struct Talked {
  Result<std::optional<boost::json::object>> outcome;
  std::string written;
  std::uint64_t opened = 0;
};

Talked talk(const std::function<void(WorkerChannel&)>& act) {
  auto ends = WorkerChannel::make_pair().value();
  WorkerChannel ours(std::move(ends.first));
  std::thread worker([&act, end = std::move(ends.second)]() mutable {
    WorkerChannel channel(std::move(end));
    while (true) { // the request, up to its empty piece
      const auto packet = channel.receive();
      if (!packet || !*packet || (*packet)->payload.empty()) break;
    }
    act(channel);
  });
  TextSink sink;
  Talked talked;
  WorkerCalls calls;
  calls.open = [&talked](std::size_t) -> Result<Descriptor> {
    ++talked.opened;
    return Descriptor(::open("/dev/null", O_RDONLY));
  };
  calls.plan = [&sink](const boost::json::object& plan) -> Result<ByteSink*> {
    if (plan.at("size").as_int64() > 100) return fail(Errc::no_space, "reserving: too much");
    return &sink;
  };
  Progress progress;
  talked.outcome = talk_to_worker(ours, request(), calls, progress);
  ours = WorkerChannel(Descriptor()); // a worker that waits sees the end
  worker.join();
  talked.written = sink.text;
  return talked;
}

void send(WorkerChannel& channel, Packet kind, std::string_view text) {
  REQUIRE(channel.send(kind, text));
}

// The exit status of a child that does this.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

TEST_CASE("WorkerRequest survives the channel's JSON", "[daemon][worker]") {
  const WorkerRequest before = request();
  const auto after = WorkerRequest::from_json(before.to_json());
  REQUIRE(after);
  CHECK(after->task == before.task);
  CHECK(after->name == before.name);
  CHECK(after->files.size() == 2);
  CHECK(after->files[1].path == "b");
  CHECK(after->files[1].size == 2);
  CHECK(after->recipe == before.recipe);
  CHECK(after->threads == 3);
  CHECK_FALSE(WorkerRequest::from_json("{}"));
  CHECK_FALSE(WorkerRequest::from_json("[]"));
  CHECK_FALSE(WorkerRequest::from_json(R"({"task":"build","name":"x","files":[1]})"));
}

TEST_CASE("a good worker's bytes arrive in order, and its outcome", "[daemon][worker]") {
  const Talked talked = talk([](WorkerChannel& channel) {
    REQUIRE(channel.send(Packet::open, std::string_view("\1\0\0\0", 4)));
    const auto file = channel.receive();
    REQUIRE((file && *file));
    CHECK((*file)->kind == Packet::file);
    CHECK((*file)->descriptor.valid());
    send(channel, Packet::plan, R"({"size":6})");
    const auto go = channel.receive();
    REQUIRE((go && *go));
    CHECK((*go)->kind == Packet::go);
    send(channel, Packet::data, "abc");
    send(channel, Packet::data, "def");
    send(channel, Packet::done, R"({"x":1})");
  });
  REQUIRE(talked.outcome);
  REQUIRE(*talked.outcome);
  CHECK((*talked.outcome)->at("x").as_int64() == 1);
  CHECK(talked.written == "abcdef");
  CHECK(talked.opened == 1);
}

TEST_CASE("a worker's error is the call's error", "[daemon][worker]") {
  const Talked talked = talk([](WorkerChannel& channel) {
    send(channel, Packet::failed,
         boost::json::serialize(api::error_to_json(
             Error{Errc::malformed, "reading 'a': bad", "look", {{"rule", "ST-02"}}, 0})));
  });
  REQUIRE_FALSE(talked.outcome);
  CHECK(talked.outcome.error().code == Errc::malformed);
  CHECK(talked.outcome.error().details.front().second == "ST-02");
}

TEST_CASE("a worker that goes away leaves nothing", "[daemon][worker]") {
  const Talked talked = talk([](WorkerChannel&) {});
  REQUIRE(talked.outcome);
  CHECK_FALSE(talked.outcome->has_value());
}

TEST_CASE("a worker that breaks the protocol ends", "[daemon][worker]") {
  const std::vector<std::function<void(WorkerChannel&)>> bad{
      [](WorkerChannel& c) { send(c, static_cast<Packet>(99), ""); },
      [](WorkerChannel& c) { send(c, Packet::request, "{}"); },
      [](WorkerChannel& c) { send(c, Packet::go, ""); },
      [](WorkerChannel& c) { send(c, Packet::data, "early"); },
      [](WorkerChannel& c) { send(c, Packet::open, "abc"); },
      [](WorkerChannel& c) { REQUIRE(c.send(Packet::open, std::string_view("\2\0\0\0", 4))); },
      [](WorkerChannel& c) {
        REQUIRE(c.send(Packet::open, std::string_view("\377\377\377\377", 4)));
      },
      [](WorkerChannel& c) { send(c, Packet::plan, "[]"); },
      [](WorkerChannel& c) { send(c, Packet::plan, "{"); },
      [](WorkerChannel& c) {
        send(c, Packet::plan, R"({"size":1})");
        (void)c.receive();
        send(c, Packet::plan, R"({"size":1})");
      },
      [](WorkerChannel& c) { send(c, Packet::done, "nonsense"); },
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    INFO("case " << i);
    const Talked talked = talk(bad[i]);
    REQUIRE_FALSE(talked.outcome);
    CHECK((talked.outcome.error().code == Errc::internal ||
           talked.outcome.error().code == Errc::malformed));
    CHECK(talked.written.empty());
  }
}

TEST_CASE("a plan that is refused ends the worker with the reason", "[daemon][worker]") {
  const Talked talked = talk([](WorkerChannel& c) { send(c, Packet::plan, R"({"size":1000})"); });
  REQUIRE_FALSE(talked.outcome);
  CHECK(talked.outcome.error().code == Errc::no_space);
}

TEST_CASE("WorkerChannel::send refuses what is too long", "[daemon][worker]") {
  auto ends = WorkerChannel::make_pair().value();
  const WorkerChannel channel(std::move(ends.first));
  const std::string most(WorkerChannel::k_max_payload, 'x');
  CHECK(channel.send(Packet::data, most));
  CHECK(channel.send(Packet::data, most + "x").error().code == Errc::invalid_argument);
  ends.second = Descriptor();
  CHECK(channel.send(Packet::data, most).error().code == Errc::io);
}

TEST_CASE("the sandbox leaves no file, no network and no program", "[daemon][worker][rule-4]") {
  const int status = in_child([] {
    const auto refused = [](int result) {
      return result < 0 && (errno == EPERM || errno == EACCES);
    };
    if (!enter_sandbox(256U << 20).seccomp) return 0; // the kernel has none
    char* none[] = {nullptr};
    if (!refused(::open("/etc/passwd", O_RDONLY))) return 1;
    if (!refused(::open("/tmp/x", O_RDWR | O_CREAT, 0600))) return 2;
    if (!refused(::socket(AF_INET, SOCK_STREAM, 0))) return 3;
    if (!refused(::socket(AF_UNIX, SOCK_STREAM, 0))) return 4;
    if (!refused(::execve("/bin/true", none, none))) return 5;
    if (!refused(::unlink("/tmp/x"))) return 6;
    if (!refused(::kill(::getppid(), 0))) return 7;
    if (!refused(::fork())) return 8;
    return 0;
  });
  CHECK(status == 0);
}

TEST_CASE("the sandbox bounds memory and allows threads", "[daemon][worker][rule-4]") {
  const int status = in_child([] {
    (void)enter_sandbox(64U << 20);
    std::thread thread([] {});
    thread.join();
    const void* big =
        ::mmap(nullptr, 256U << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return big == MAP_FAILED && errno == ENOMEM ? 0 : 1; // NOLINT: the C library's macro
  });
  CHECK(status == 0);
}
