// SPDX-License-Identifier: Apache-2.0
// Names that move: branches, tags, repositories; and what a pull costs where nothing moved.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> texts(const boost::json::value& list) {
  std::vector<std::string> out;
  for (const auto& one : list.as_array()) {
    out.emplace_back(one.as_string());
  }
  return out;
}

} // namespace

TEST_CASE("a branch that moved is told with what changed, and what was pulled stays",
          "[e2e][moved]") {
  TestHub hub;
  const std::string first = hub.add_repo(
      "org/name", {{"same.txt", "same"}, {"changed.txt", "one"}, {"gone.txt", "gone"}});
  PrivateDaemon daemon(hub.endpoint());
  const Finished pulled = daemon.ctl({"pull", "org/name"});
  REQUIRE(pulled.status == 0);
  CHECK_THAT(pulled.err, !Contains("moved"));
  REQUIRE(daemon.ctl({"pin", "org/name"}).status == 0);
  const fs::path old_folder = pulled.out.substr(0, pulled.out.size() - 1);

  const std::string second =
      hub.add_repo("org/name", {{"same.txt", "same"}, {"changed.txt", "two"}, {"new.txt", "new"}});
  const Finished again = daemon.ctl({"pull", "org/name"});
  INFO(again.err);
  REQUIRE(again.status == 0);
  CHECK_THAT(again.out, Contains(second));
  CHECK_THAT(again.err,
             Contains("'main' moved from " + first.substr(0, 12) + " to " + second.substr(0, 12)) &&
                 Contains("1 added (new.txt)") && Contains("1 removed (gone.txt)") &&
                 Contains("1 changed (changed.txt)"));
  CHECK(read_file(old_folder / "changed.txt") == "one");
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().size() == 2);
  CHECK(daemon.ctl_json({"show", "org/name@" + first}).at("files").as_array().size() == 3);

  // Told once, and kept in the job's record.
  CHECK_THAT(daemon.ctl({"pull", "org/name"}).err, !Contains("moved"));
  const std::string third = hub.add_repo("org/name", {{"same.txt", "same"}});
  const auto moved = daemon.ctl_json({"pull", "org/name"}).at("pull").at("moved").as_object();
  CHECK(moved.at("from").as_string() == second);
  CHECK(moved.at("to").as_string() == third);
  CHECK(texts(moved.at("removed")) == std::vector<std::string>{"changed.txt", "new.txt"});
  CHECK(texts(moved.at("added")).empty());
  bool recorded = false;
  const auto jobs = daemon.ctl_json({"jobs", "--all"});
  for (const auto& job : jobs.at("jobs").as_array()) {
    const auto* result = job.as_object().if_contains("result");
    recorded = recorded || (result != nullptr && result->as_object().contains("pull"));
  }
  CHECK(recorded);
}

TEST_CASE("a tag that moved is told as well, and a pull of the commit is not", "[e2e][moved]") {
  TestHub hub;
  const std::string first = hub.add_repo("org/name", {{"a", "1"}});
  const std::string second = hub.add_repo("org/name", {{"a", "2"}});
  const auto tag = [&hub](const std::string& commit) {
    hub.change([&](Repositories& all) { all.find("org/name")->tags["v1"] = commit; });
  };
  tag(first);
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/name@v1"}).status == 0);
  tag(second);
  const Finished moved = daemon.ctl({"pull", "org/name@v1"});
  CHECK_THAT(moved.err, Contains("'v1' moved from " + first.substr(0, 12)));
  CHECK_THAT(daemon.ctl({"pull", "org/name@" + first}).err, !Contains("moved"));
}

TEST_CASE("C05: a renamed repository is followed, told, and known by both names",
          "[e2e][moved][C05]") {
  TestHub hub;
  const std::string commit =
      hub.add_repo("new/name", {{"a.txt", "a"}, {"big.bin", std::string(100'000, 'b')}});
  hub.change([](Repositories& all) {
    all.rename("old/name", "new/name");
    all.find("new/name")->is_private = true;
    all.add_token("hf_reader", {"new/name"});
  });
  PrivateDaemon daemon(hub.endpoint());
  const Process::Environment token{{"HF_TOKEN", "hf_reader"}};
  const Finished pulled = daemon.ctl({"pull", "old/name"}, token);
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  CHECK_THAT(pulled.out, Contains("new/name/" + commit));
  CHECK_THAT(pulled.err, Contains("'old/name' is now 'new/name'"));

  // The content is there once, under both names.
  const auto usage = daemon.ctl_json({"usage"});
  CHECK(usage.at("snapshots").to_number<std::uint64_t>() == 1);
  const auto by_old = daemon.ctl_json({"show", "old/name"}).at("snapshot").as_object();
  CHECK(by_old.at("repo").as_string() == "new/name");
  hub.forget_requests();
  CHECK(daemon.ctl({"pull", "new/name"}, token).out == pulled.out);
  for (const auto& seen : hub.requests()) {
    CHECK_THAT(seen.request.target, !Contains("big.bin"));
  }
}

TEST_CASE("a pull where nothing changed asks nothing for a commit, and once for a branch",
          "[e2e][moved][C11]") {
  TestHub hub;
  const std::string commit = hub.add_repo("org/name", {{"a.txt", "a"}, {"b.txt", "b"}});
  PrivateDaemon daemon(hub.endpoint());
  const Finished pulled = daemon.ctl({"pull", "org/name"});
  REQUIRE(pulled.status == 0);
  hub.forget_requests();
  CHECK(daemon.ctl({"pull", "org/name@" + commit}).out == pulled.out);
  CHECK(hub.requests().empty());
  CHECK(daemon.ctl({"pull", "org/name"}).out == pulled.out);
  CHECK(hub.requests().size() == 1);
  hub.forget_requests();
  CHECK(daemon.ctl({"pull", "org/name", "--include", "*.txt"}).out == pulled.out);
  CHECK(hub.requests().size() == 1);
}

TEST_CASE(
    "Pitfall 22: a repository that was made anew under its name is not mixed with the old one",
    "[e2e][moved][pitfall-22]") {
  TestHub old_hub;
  const std::string first = old_hub.add_repo("org/name", {{"a.txt", "old"}});
  PrivateDaemon daemon(old_hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  // The old commits are gone, and with them every address that was given for them.
  old_hub.change([](Repositories& all) {
    auto* repository = all.find("org/name");
    repository->commits.clear();
    repository->branches.clear();
  });
  const std::string second = old_hub.add_repo("org/name", {{"a.txt", "new"}});
  const Finished pulled = daemon.ctl({"pull", "org/name"});
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  CHECK_THAT(pulled.out, Contains(second));
  CHECK(read_file(fs::path(pulled.out.substr(0, pulled.out.size() - 1)) / "a.txt") == "new");
  // What was pulled is still here, though the Hub does not know it any more.
  CHECK(daemon.ctl({"pull", "org/name@" + first}).status == 0);
  CHECK_THAT(daemon.ctl({"get", "org/name@" + first + ":a.txt"}).out, Contains(first));
}
