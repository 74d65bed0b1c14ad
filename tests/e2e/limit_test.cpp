// SPDX-License-Identifier: Apache-2.0
// Bandwidth limits that change while downloads run.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <poll.h>

#include <chrono>

using namespace modeld::test;
using Catch::Contains;

namespace {

constexpr std::uint64_t k_mib = 1 << 20;

// A daemon with a pull of 64 MiB that runs at most at the first rate.
struct Running {
  TestHub hub;
  std::unique_ptr<PrivateDaemon> daemon;
  std::string id;

  explicit Running(const std::vector<std::string>& options, const std::string& config = {}) {
    hub.add_repo("org/big", {{"big.bin", std::string(64 * k_mib, 'b')}});
    daemon = std::make_unique<PrivateDaemon>(hub.endpoint(), config);
    std::vector<std::string> pull{"pull", "--detach", "org/big"};
    pull.insert(pull.end(), options.begin(), options.end());
    const Finished started = daemon->ctl(pull);
    INFO(started.err);
    REQUIRE(started.status == 0);
    id = started.out.substr(0, started.out.size() - 1);
    REQUIRE(wait_until([&] { return job().at("phase") == "downloading" && done() > 0; }));
  }

  boost::json::object job() const {
    const auto answer = daemon->ctl_json({"jobs", "--all"});
    for (const auto& one : answer.at("jobs").as_array()) {
      if (one.at("id").as_string() == id) return one.as_object();
    }
    return {};
  }
  /// Of the pull; without a rate what it is.
  Finished limit(const std::string& rate) const {
    std::vector<std::string> arguments{"jobs", "limit", "--job", id};
    if (!rate.empty()) arguments.push_back(rate);
    return daemon->ctl(arguments);
  }
  std::uint64_t done() const { return job().at("done").to_number<std::uint64_t>(); }
  bool finished() const { return job().at("state") == "done"; }

  /// Whether no more comes than a rate allows, beside a part of each range, which a link that is
  /// faster brings at once. The time is taken around all, since a busy machine makes it longer.
  bool keeps_to(std::uint64_t rate) const {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t before = done();
    ::poll(nullptr, 0, 500);
    const std::uint64_t came = done() - before;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const double most = static_cast<double>(rate) * took.count() + 24.0 * k_mib;
    return !finished() && static_cast<double>(came) < most; // without a limit it ends at once
  }
};

} // namespace

TEST_CASE("a pull's own limit holds, shows, and changes while it runs", "[e2e][limit]") {
  Running run({"--limit-rate", "2MiB"});
  CHECK(run.keeps_to(2 * k_mib));
  CHECK(run.limit("").out == "2.0 MiB/s\n");

  SECTION("a higher one") {
    CHECK(run.limit("20MiB").out == "20.0 MiB/s\n");
    // 3 seconds; at the rate before it would be 30
    CHECK(wait_until([&] { return run.finished(); }, std::chrono::seconds(20)));
  }
  SECTION("none") {
    CHECK(run.limit("none").out == "no limit\n");
    CHECK(wait_until([&] { return run.finished(); }, std::chrono::seconds(20)));
    const Finished late = run.limit("1MiB");
    CHECK(late.status == 1);
    CHECK_THAT(late.err, Contains("it is finished") && Contains("[conflict]"));
  }
  SECTION("kept over a restart, and set anew by who joins") {
    run.daemon->kill();
    run.daemon->start();
    CHECK(run.limit("").out == "2.0 MiB/s\n");
    CHECK(run.daemon->ctl({"pull", "--limit-rate", "none", "org/big"}).status == 0);
  }
}

TEST_CASE("get limits the download that it needs, and the list of jobs tells", "[e2e][limit]") {
  TestHub hub;
  hub.add_repo("org/made", {{"model.Q8_0.gguf", std::string(16 * k_mib, 'b')}});
  PrivateDaemon daemon(hub.endpoint());
  CHECK(daemon.ctl({"get", "--limit-rate", "fast", "org/made:Q8_0"}).status == 2);
  const Finished started = daemon.ctl({"get", "--detach", "--limit-rate", "1MiB", "org/made:Q8_0"});
  INFO(started.err);
  REQUIRE(started.status == 0);
  REQUIRE(wait_until([&] {
    const std::string jobs = daemon.ctl({"jobs"}).out;
    return jobs.find("pull") != std::string::npos &&
           jobs.find("at most 1.0 MiB/s") != std::string::npos;
  }));
}

TEST_CASE("the limit of all downloads starts with the setting and changes while they run",
          "[e2e][limit]") {
  Running run({}, "[store]\nmin_free = 0\nreserve_file = 0\n[hub]\nbandwidth = \"2MiB\"\n");
  CHECK(run.daemon->ctl({"jobs", "limit"}).out == "2.0 MiB/s\n");
  CHECK(run.keeps_to(2 * k_mib));
  CHECK(run.daemon->ctl({"jobs", "limit", "none"}).out == "no limit\n");
  CHECK(wait_until([&] { return run.finished(); }, std::chrono::seconds(20)));
}

TEST_CASE("a rate that is none, and a job that downloads nothing, are refused by name",
          "[e2e][limit]") {
  TestHub hub;
  PrivateDaemon daemon(hub.endpoint());
  for (const char* rate : {"fast", "0", "-5", "10XB", "MiB"}) {
    const Finished wrong = daemon.ctl({"jobs", "limit", rate});
    INFO(rate);
    CHECK(wrong.status == 2);
  }
  CHECK_THAT(daemon.ctl({"jobs", "limit", "fast"}).err, Contains("'fast'") && Contains("20MiB"));
  CHECK(daemon.ctl({"pull", "--limit-rate", "fast", "org/x"}).status == 2);
  CHECK(daemon.ctl({"jobs", "limit", "1MiB", "--job", "nosuch"}).status == 3);
  const Finished scrub = daemon.ctl({"scrub"});
  REQUIRE(scrub.status == 0);
  const auto jobs = daemon.ctl_json({"jobs", "--all"}).at("jobs").as_array();
  const std::string id(jobs.at(0).at("id").as_string());
  CHECK_THAT(daemon.ctl({"jobs", "limit", "1MiB", "--job", id}).err,
             Contains("only a pull downloads"));
}
