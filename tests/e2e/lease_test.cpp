// SPDX-License-Identifier: Apache-2.0
#include "daemon/client.hpp"

#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>

using namespace modeld;
using namespace modeld::test;
using modeld::daemon::Client;

namespace {

std::size_t leases(const PrivateDaemon& daemon) {
  Client client(daemon.socket(), {});
  return client.get("/v1/leases").value().body.at("leases").as_array().size();
}

std::string pulled_blob(const PrivateDaemon& daemon) {
  const auto shown = daemon.ctl_json({"get", "org/name:README.md"});
  return std::string(shown.at("variant").at("sha256").as_string());
}

} // namespace

TEST_CASE("a lease on a connection ends with it", "[e2e][lease]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "x"}});
  const PrivateDaemon daemon(hub.endpoint());
  const std::string blob = pulled_blob(daemon);
  {
    Client holder(daemon.socket(), {});
    REQUIRE(holder.post("/v1/leases", {{"blob", blob}, {"note", "testing"}}));
    CHECK(leases(daemon) == 1);
    CHECK(holder.get("/v1/health")); // the connection goes on
    CHECK(leases(daemon) == 1);
  }
  CHECK(wait_until([&] { return leases(daemon) == 0; }));
}

TEST_CASE("a lease until a time survives a restart, one on a connection does not",
          "[e2e][lease][restart]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "x"}});
  PrivateDaemon daemon(hub.endpoint());
  const std::string blob = pulled_blob(daemon);
  Client holder(daemon.socket(), {});
  REQUIRE(holder.post("/v1/leases", {{"blob", blob}}));
  REQUIRE(holder.post("/v1/leases", {{"blob", blob}, {"holder", "deadline"}, {"seconds", 3600}}));
  CHECK(leases(daemon) == 2);
  daemon.kill();
  daemon.start();
  CHECK(leases(daemon) == 1);
}

TEST_CASE("a reader of events that comes back is told what it missed", "[e2e][jobs][sse]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "x"}});
  const PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  const auto jobs = daemon.ctl_json({"jobs", "--all"});
  const std::string id(jobs.at("jobs").as_array().front().at("id").as_string());
  Client client(daemon.socket(), {});
  const daemon::Interrupt interrupt;
  const auto told = [&](std::uint64_t after) {
    std::vector<std::uint64_t> numbers;
    const auto done = client.events(id, after, interrupt, [&](const Client::Event& event) {
      if (event.type != "progress") numbers.push_back(event.number);
      return event.type != "end";
    });
    CHECK(done);
    return numbers;
  };
  const auto all = told(0);
  REQUIRE(all.size() >= 3);
  CHECK(std::is_sorted(all.begin(), all.end()));
  CHECK(told(all[1]) == std::vector<std::uint64_t>(all.begin() + 2, all.end()));
  CHECK(told(all.back()).size() == 1); // the end is told again
}
