// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/e2e/silent_server.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <csignal>

using namespace modeld::test;
using Catch::Contains;
using Catch::EndsWith;

namespace {

boost::json::array unfinished(const PrivateDaemon& daemon) {
  boost::json::array out;
  const auto answer = daemon.ctl_json({"jobs"});
  for (const auto& job : answer.at("jobs").as_array()) {
    const auto state = job.at("state").as_string();
    if (state == "queued" || state == "running") out.push_back(job);
  }
  return out;
}

std::string variant_job(const PrivateDaemon& daemon) {
  for (const auto& job : unfinished(daemon)) {
    if (job.at("kind").as_string() == "variant") return std::string(job.at("id").as_string());
  }
  return {};
}

} // namespace

TEST_CASE("Ctrl-C leaves the job to itself, and says how to watch and cancel it",
          "[e2e][interrupt]") {
  SilentServer hub;
  PrivateDaemon daemon(hub.endpoint());
  Process get = daemon.start_ctl({"get", "org/name:Q4_K_M"});
  REQUIRE(wait_until([&] { return get.err().find("resolving") != std::string::npos; }));
  get.signal(SIGINT);
  const auto ended = get.wait(std::chrono::seconds(20));
  REQUIRE(ended);
  CHECK(ended->status == 130);
  CHECK(ended->out.empty());
  const std::string id = variant_job(daemon);
  REQUIRE_FALSE(id.empty()); // it goes on
  CHECK_THAT(last_line(ended->err), Contains(id) && EndsWith("[cancelled]"));
  CHECK_THAT(ended->err, Contains("modelctl watch " + id) && Contains("modelctl cancel " + id));

  Process watch = daemon.start_ctl({"watch", id});
  REQUIRE(wait_until(
      [&] { return watch.err().find("resolving") != std::string::npos || !watch.running(); }));
  CHECK(daemon.ctl({"cancel", id}).status == 0);
  const auto watched = watch.wait(std::chrono::seconds(20));
  REQUIRE(watched);
  CHECK(watched->status == 130);
  CHECK_THAT(last_line(watched->err), Contains("was cancelled"));
  CHECK(wait_until([&] { return unfinished(daemon).empty(); })); // its pull too
}

TEST_CASE("cancelling a job that is finished or unknown is refused", "[e2e][interrupt]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "x"}});
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  const auto answer = daemon.ctl_json({"jobs", "--all"});
  const auto& job = answer.at("jobs").as_array().front().as_object();
  const Finished late = daemon.ctl({"cancel", std::string(job.at("id").as_string())});
  CHECK(late.status == 1);
  CHECK_THAT(last_line(late.err), EndsWith("[conflict]"));
  CHECK(daemon.ctl({"cancel", "absent"}).status == 3);
  CHECK(daemon.ctl({"watch", "absent"}).status == 3);
  // Watching what is finished tells the end again.
  const Finished watched = daemon.ctl({"watch", std::string(job.at("id").as_string())});
  CHECK(watched.status == 0);
  CHECK_THAT(watched.out, Contains("org/name"));
}

TEST_CASE("get --detach prints the job's id, and SIGTERM ends the daemon cleanly",
          "[e2e][interrupt]") {
  SilentServer hub;
  PrivateDaemon daemon(hub.endpoint());
  const Finished detached = daemon.ctl({"get", "--detach", "org/name:Q4_K_M"});
  CHECK(detached.status == 0);
  CHECK_THAT(detached.out, Contains(variant_job(daemon)));
  CHECK(daemon.stop() == 0);
  CHECK_FALSE(std::filesystem::exists(daemon.socket()));
  CHECK_THAT(daemon.log(), Contains("goes on at the next start"));
  daemon.start();
  CHECK_FALSE(variant_job(daemon).empty()); // it went on
}
