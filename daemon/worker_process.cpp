// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_process.hpp"

#include "daemon/worker_main.hpp"
#include "schema/api.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

extern char** environ; // NOLINT: the C library's name

namespace modeld::daemon {
namespace {

constexpr std::chrono::milliseconds k_look_for_cancel{50};

// The child; killed and reaped at the end of its owner.
class Child {
public:
  static Result<Child> start(int channel);
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)reap();
  }

  /// How it ended, in words; empty for a good end.
  std::string reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) {
      return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) != 0) return fmt::format("exit status {}", WEXITSTATUS(status));
    return {};
  }

private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

// Signals that the daemon blocks or ignores have their usual meaning in the child.
void reset_signals(posix_spawnattr_t& attributes) {
  sigset_t none;
  sigemptyset(&none);
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

Result<Child> Child::start(int channel) {
  std::string program = "modeld";
  std::string word = "worker";
  std::array<char*, 3> arguments{program.data(), word.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, channel, k_worker_descriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  reset_signals(attributes);
  pid_t pid = -1;
  // The running program, also after an upgrade has replaced its file.
  const int failed =
      ::posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fail(from_errno(failed, "starting a worker"));
  return Child(pid);
}

Result<boost::json::object> read_object(std::span<const std::byte> payload) {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  MODELD_ASSIGN(auto value, parse_json(text, "a worker's answer"));
  if (!value.is_object()) return fail(Errc::internal, "parsing a worker's answer: no object");
  return std::move(value.get_object());
}

// Little-endian, at most 8 bytes.
std::uint64_t read_number(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    number |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return number;
}

Error broken(std::string_view why) {
  return {Errc::internal, fmt::format("talking to a worker: {}", why), {}, {}, 0};
}

// Keeps a text that a worker sends.
class TextSink final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    if (bytes.size() > k_max_worker_text - text_.size()) {
      return fail(broken(fmt::format("its answer is longer than {} bytes", k_max_worker_text)));
    }
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  std::string text() && { return std::move(text_); }

private:
  std::string text_;
};

// The daemon's side of one worker's life.
class Talk {
public:
  Talk(WorkerChannel& channel, const WorkerRequest& request, const WorkerCalls& calls,
       Progress& progress)
      : channel_(channel), request_(request), calls_(calls), progress_(progress) {}

  Result<void> send_request() {
    std::string_view rest;
    const std::string text = request_.to_json();
    rest = text;
    while (true) {
      const auto piece = rest.substr(0, WorkerChannel::k_max_payload);
      MODELD_TRY(channel_.send(Packet::request, piece));
      if (piece.empty()) return {};
      rest.remove_prefix(piece.size());
    }
  }

  /// The outcome; nothing where the worker went away without one.
  Result<std::optional<boost::json::object>> serve() {
    while (true) {
      if (progress_.cancel.load())
        return fail(Errc::cancelled, "working on the files: interrupted");
      auto packet = channel_.receive(k_look_for_cancel);
      if (!packet && packet.error().code == Errc::busy) continue;
      if (!packet) return fail(std::move(packet).error());
      if (!*packet) return std::optional<boost::json::object>{};
      const WorkerChannel::Received& got = **packet;
      if (got.kind == Packet::done) {
        MODELD_ASSIGN(auto done, read_object(got.payload));
        return std::optional(std::move(done));
      }
      if (got.kind == Packet::failed) {
        MODELD_ASSIGN(const auto told, read_object(got.payload));
        Error error = api::error_from_json(told);
        if (error.message.empty()) return fail(broken("it failed without a reason"));
        return fail(std::move(error));
      }
      MODELD_TRY(answer(got));
    }
  }

private:
  Result<void> answer(const WorkerChannel::Received& got) {
    if (got.kind == Packet::open) return open(got.payload);
    if (got.kind == Packet::plan) return plan(got.payload);
    if (got.kind == Packet::data && sink_ != nullptr) {
      if (calls_.output_is_work) progress_.done += got.payload.size();
      return sink_->write(got.payload);
    }
    if (got.kind == Packet::progress) return count(got.payload);
    return fail(broken("a packet of an unknown kind, or at the wrong time"));
  }

  Result<void> count(std::span<const std::byte> payload) {
    if (payload.size() != 2 * sizeof(std::uint64_t)) return fail(broken("a count is too short"));
    progress_.done = read_number(payload.first(sizeof(std::uint64_t)));
    progress_.total = read_number(payload.last(sizeof(std::uint64_t)));
    return {};
  }

  Result<void> open(std::span<const std::byte> payload) {
    if (payload.size() != 4) return fail(broken("a question for a file is not 4 bytes long"));
    const std::uint64_t index = read_number(payload);
    if (index >= request_.files.size()) {
      return fail(broken(fmt::format("it asks for file {} of {}", index, request_.files.size())));
    }
    MODELD_ASSIGN(const Descriptor file, calls_.open(index));
    return channel_.send(Packet::file, {}, file.get());
  }

  Result<void> plan(std::span<const std::byte> payload) {
    if (calls_.plan == nullptr || sink_ != nullptr) return fail(broken("an unexpected plan"));
    MODELD_ASSIGN(const auto plan, read_object(payload));
    MODELD_ASSIGN(sink_, calls_.plan(plan));
    return channel_.send(Packet::go, std::span<const std::byte>{});
  }

  WorkerChannel& channel_;
  const WorkerRequest& request_;
  const WorkerCalls& calls_;
  Progress& progress_;
  ByteSink* sink_ = nullptr;
};

} // namespace

Result<std::optional<boost::json::object>> talk_to_worker(WorkerChannel& channel,
                                                          const WorkerRequest& request,
                                                          const WorkerCalls& calls,
                                                          Progress& progress) {
  Talk talk(channel, request, calls, progress);
  // A worker that does not take its request says why by the way it ended.
  if (auto sent = talk.send_request(); !sent) {
    if (sent.error().code == Errc::io) return std::optional<boost::json::object>{};
    return fail(std::move(sent).error());
  }
  return talk.serve();
}

Result<boost::json::object> run_in_worker(const WorkerRequest& request, const WorkerCalls& calls,
                                          Progress& progress) {
  MODELD_ASSIGN(auto ends, WorkerChannel::make_pair());
  WorkerChannel channel(std::move(ends.first));
  MODELD_ASSIGN(Child child, Child::start(ends.second.get()));
  ends.second = Descriptor(); // so that the child's end is the only one
  MODELD_ASSIGN(auto outcome, talk_to_worker(channel, request, calls, progress));
  if (outcome) return *std::move(outcome);
  return fail(
      Errc::internal,
      fmt::format("working on the files of '{}': the worker ended by {}", request.name,
                  child.reap()),
      "nothing else is touched; where no file changed meanwhile, please report the model as "
      "a bug");
}

Result<std::string> read_from_worker(const WorkerRequest& request,
                                     const std::function<Result<Descriptor>(std::size_t)>& open,
                                     Progress& progress) {
  TextSink sink;
  WorkerCalls calls;
  calls.open = open;
  calls.plan = [&sink](const boost::json::object&) -> Result<ByteSink*> { return &sink; };
  calls.output_is_work = false;
  MODELD_TRY(run_in_worker(request, calls, progress));
  return std::move(sink).text();
}

} // namespace modeld::daemon
