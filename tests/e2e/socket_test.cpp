// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

constexpr const char* k_no_hub = "http://127.0.0.1:9";

Finished start_at(const TempDir& dir, const std::string& socket) {
  return run({MODELD_PROGRAM, "--root", (dir / "other").string(), "--socket", socket});
}

} // namespace

TEST_CASE("E10 a socket's path that is too long is told with its limit and its setting",
          "[e2e][socket][E10]") {
  TempDir dir;
  const std::string socket = (dir / std::string(120, 'd') / "modeld.sock").string();
  const Finished refused = start_at(dir, socket);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains(socket) && Contains(std::to_string(socket.size())) &&
                              Contains("107") && Contains("--socket"));
  CHECK_FALSE(fs::exists(dir / "other")); // no lock file, no store
  const Finished client = run({MODELCTL_PROGRAM, "--socket", socket, "health"});
  CHECK(client.status == 2);
  CHECK_THAT(client.err, Contains("107"));
}

TEST_CASE("E11 a dead socket is replaced, a live one is left alone", "[e2e][socket][E11]") {
  PrivateDaemon daemon(k_no_hub);
  const Finished second = start_at(daemon.dir(), daemon.socket());
  CHECK(second.status == 1);
  CHECK_THAT(second.err, Contains("a daemon answers there"));
  CHECK(daemon.ctl({"health"}).status == 0);
  daemon.kill();
  CHECK(fs::exists(daemon.socket()));
  daemon.start();
  CHECK(daemon.ctl({"health"}).status == 0);
}

TEST_CASE("E11 a file that is no socket is never removed", "[e2e][socket][E11]") {
  TempDir dir;
  const auto path = dir / "modeld.sock";
  std::ofstream(path) << "mine";
  const Finished refused = start_at(dir, path.string());
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Contains("no socket"));
  CHECK(read_file(path) == "mine");
}

TEST_CASE("E11 one store has one daemon, whatever socket the second one asks for",
          "[e2e][socket][E11]") {
  PrivateDaemon daemon(k_no_hub);
  const Finished second = run({MODELD_PROGRAM, "--root", daemon.root().string(), "--socket",
                               (daemon.dir() / "second.sock").string()});
  CHECK(second.status == 1);
  CHECK_THAT(second.err, Contains(std::to_string(daemon.pid())) && Contains("[conflict]"));
  CHECK(daemon.ctl({"health"}).status == 0);
}
