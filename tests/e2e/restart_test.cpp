// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <poll.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <random>

using namespace modeld::test;
using Catch::Contains;

namespace {

std::string random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) {
    c = static_cast<char>(random());
  }
  return text;
}

std::string state_of(const PrivateDaemon& daemon, const std::string& id) {
  const auto answer = daemon.ctl_json({"jobs", "--all"});
  for (const auto& job : answer.at("jobs").as_array()) {
    if (job.at("id").as_string() == id) return std::string(job.at("state").as_string());
  }
  return "forgotten";
}

std::string detached(const PrivateDaemon& daemon, const std::vector<std::string>& arguments) {
  const Finished started = daemon.ctl(arguments);
  REQUIRE(started.status == 0);
  return started.out.substr(0, started.out.size() - 1);
}

/// Bytes of one file of that size that the storage was asked for.
std::uint64_t asked_bytes(const TestHub& hub, std::uint64_t size) {
  std::uint64_t sum = 0;
  for (const SeenRequest& seen : hub.requests()) {
    if (seen.request.origin != Origin::data || seen.request.method != "GET") continue;
    std::uint64_t first = 0;
    std::uint64_t last = size - 1;
    const std::string range(seen.request.header("Range"));
    static_cast<void>(std::sscanf(range.c_str(), "bytes=%" SCNu64 "-%" SCNu64, &first, &last));
    sum += last + 1 - first;
  }
  return sum;
}

} // namespace

TEST_CASE("a daemon killed at any moment goes on with its jobs, and ends right",
          "[e2e][restart][kill]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  std::string id = detached(daemon, {"get", "--detach", "modeld/TinyVerse-4M:Q4_K_M"});
  for (int i = 0; i < 12 && state_of(daemon, id) != "done"; ++i) {
    ::poll(nullptr, 0, i * 7); // another moment each time
    daemon.kill();
    daemon.start();
    // Nothing is half there: what is listed is whole.
    const auto list = daemon.ctl_json({"ls"});
    for (const auto& variant : list.at("variants").as_array()) {
      CHECK(file_sha256(std::string(variant.at("path").as_string())) == expected_sha256("Q4_K_M"));
    }
  }
  CHECK(wait_until([&] { return state_of(daemon, id) == "done"; })); // nobody asked again
  const Finished got = daemon.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  REQUIRE(got.status == 0);
  CHECK(file_sha256(got.out.substr(0, got.out.size() - 1)) == expected_sha256("Q4_K_M"));
}

TEST_CASE("a download goes on behind a kill where it stopped", "[e2e][restart][kill]") {
  TestHub hub;
  const std::string big = random_bytes(96U << 20, 1);
  hub.add_repo("org/big", {{"big.bin", big}});
  PrivateDaemon daemon(hub.endpoint());
  const std::string id = detached(daemon, {"pull", "--detach", "org/big"});
  const auto partial = [&] {
    std::uintmax_t most = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(daemon.root() / "tmp")) {
      if (entry.is_regular_file()) most = std::max(most, entry.file_size());
    }
    return most;
  };
  REQUIRE(wait_until([&] { return partial() > (4U << 20) || state_of(daemon, id) == "done"; }));
  daemon.kill();
  hub.forget_requests();
  daemon.start();
  const Finished pulled = daemon.ctl({"pull", "org/big"});
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  const std::filesystem::path folder = pulled.out.substr(0, pulled.out.size() - 1);
  CHECK(std::filesystem::file_size(folder / "big.bin") == big.size());
  for (const SeenRequest& seen : hub.requests()) {
    if (seen.request.method != "GET" || seen.request.origin != Origin::data) continue;
    CHECK_THAT(std::string(seen.request.header("Range")), Contains("bytes="));
  }
}

TEST_CASE("parts that came ahead of a hanging one outlive the daemon, and a cancel",
          "[e2e][restart][kill][shelf]") {
  constexpr std::uint64_t k_part = 4U << 20;
  const std::string how = GENERATE("kill", "stop", "cancel");
  INFO(how);
  TestHub hub;
  const std::string big = random_bytes(40U << 20, 3);
  hub.add_repo("org/big", {{"big.bin", big}});
  FaultRule hang;
  hang.fault = "stall";
  hang.at = 300'000;
  hang.match.origin = Origin::data;
  hang.match.covers = k_part - 1;
  hang.match.times = 0;
  hub.misbehave(hang);
  PrivateDaemon daemon(hub.endpoint());
  const std::string id = detached(daemon, {"pull", "--detach", "org/big"});
  const auto kept = [&](std::string_view kind, std::uint64_t tail) {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(daemon.root() / "tmp")) {
      const bool is_one = entry.path().filename().string().find(kind) != std::string::npos;
      if (is_one) bytes += entry.file_size() - tail;
    }
    return bytes;
  };
  REQUIRE(wait_until([&] { return kept(".at-", 32) >= 6 * k_part; }));
  if (how == "kill") daemon.kill();
  if (how == "stop") daemon.stop();
  if (how == "cancel") {
    REQUIRE(daemon.ctl({"cancel", id}).status == 0);
    REQUIRE(wait_until([&] { return state_of(daemon, id) == "cancelled"; }));
  }
  const std::uint64_t here = kept(".part", 0) + kept(".at-", 32);
  CHECK(here >= 6 * k_part);
  hub.script().clear();
  hub.forget_requests();
  if (how != "cancel") daemon.start();
  const Finished pulled = daemon.ctl({"pull", "org/big"});
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  const std::filesystem::path folder = pulled.out.substr(0, pulled.out.size() - 1);
  CHECK(std::filesystem::file_size(folder / "big.bin") == big.size());
  // On a busy machine a part may be late and asked for once more.
  CHECK(asked_bytes(hub, big.size()) >= big.size() - here);
  CHECK(asked_bytes(hub, big.size()) < big.size() - here + k_part);
  CHECK(std::filesystem::is_empty(daemon.root() / "tmp"));
}

TEST_CASE("a client that watches sees its job through a restart of the daemon", "[e2e][restart]") {
  TestHub hub;
  hub.add_repo("org/big", {{"big.bin", random_bytes(64U << 20, 2)}});
  PrivateDaemon daemon(hub.endpoint());
  Process pull = daemon.start_ctl({"pull", "org/big"});
  REQUIRE(wait_until([&] { return pull.err().find("downloading") != std::string::npos; }));
  daemon.kill();
  daemon.start();
  const auto ended = pull.wait(std::chrono::seconds(60));
  REQUIRE(ended);
  INFO(ended->err);
  CHECK(ended->status == 0);
  CHECK_THAT(ended->out, Contains("org/big"));
}

TEST_CASE("with store.id a disk that is not mounted is no empty store", "[e2e][restart][mount]") {
  TestHub hub;
  hub.add_repo("org/small", {{"a", "b"}});
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/small"}).status == 0);
  const std::string id(daemon.ctl_json({"health"}).at("store").as_string());
  daemon.stop();
  const auto config = daemon.dir() / "modeld.toml";
  std::ofstream(config) << "[store]\nmin_free = 0\nreserve_file = 0\nid = \"" << id << "\"\n";
  std::filesystem::rename(daemon.root(), daemon.dir() / "disk");
  const auto start = [&] {
    return run({MODELD_PROGRAM, "--root", daemon.root().string(), "--socket", daemon.socket(),
                "--config", config.string()});
  };
  CHECK_THAT(start().err,
             Contains("mount the file system of the store") && Contains("[not_found]"));
  CHECK_FALSE(std::filesystem::exists(daemon.root()));
  std::filesystem::create_directory(daemon.root()); // the place where it would be mounted
  CHECK_THAT(start().err, Contains(id) && Contains("[not_found]"));
  CHECK(std::filesystem::is_empty(daemon.root()));
  std::filesystem::remove(daemon.root());
  std::filesystem::rename(daemon.dir() / "disk", daemon.root());
  daemon.start();
  CHECK(daemon.ctl({"show", "org/small"}).status == 0);
}

TEST_CASE("a second daemon on the same store or socket is refused", "[e2e][restart]") {
  TestHub hub;
  PrivateDaemon daemon(hub.endpoint());
  const Finished same_store = run({MODELD_PROGRAM, "--root", daemon.root().string(), "--socket",
                                   (daemon.dir() / "other.sock").string()});
  CHECK(same_store.status == 1);
  CHECK_THAT(last_line(same_store.err), Contains("[conflict]"));
  const Finished same_socket = run(
      {MODELD_PROGRAM, "--root", (daemon.dir() / "other").string(), "--socket", daemon.socket()});
  CHECK(same_socket.status == 1);
  CHECK_THAT(last_line(same_socket.err), Contains("a daemon answers there"));
  CHECK(daemon.ctl({"health"}).status == 0);
}
