// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

using namespace modeld::test;
using Catch::Contains;
using Catch::EndsWith;

namespace {

constexpr const char* k_repo = "modeld/TinyVerse-4M";

std::string without_line_feed(const std::string& text) {
  REQUIRE_THAT(text, EndsWith("\n"));
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 1);
  return text.substr(0, text.size() - 1);
}

} // namespace

TEST_CASE("modelctl get prints one path, of a file with the reference's SHA-256", "[e2e][get]") {
  TestHub hub;
  const std::string commit = hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  for (const auto& [recipe, file] :
       std::vector<std::pair<std::string, std::string>>{{"Q4_K_M", "Q4_K_M"},
                                                        {"Q6_K", "Q6_K"},
                                                        {"Q8_0", "Q8_0"},
                                                        {"BF16", "bf16"},
                                                        {"F16", "f16"},
                                                        {"F32", "f32"}}) {
    const Finished got = daemon.ctl({"get", std::string(k_repo) + "@" + commit + ":" + recipe});
    INFO(got.err);
    REQUIRE(got.status == 0);
    const std::filesystem::path path = without_line_feed(got.out);
    CHECK(file_sha256(path) == expected_sha256(file));
    CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms(0222)) ==
          std::filesystem::perms::none);
  }
}

TEST_CASE("modelctl get of a built file needs no job and no network", "[e2e][get]") {
  TestHub hub;
  hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const Finished first = daemon.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  INFO(first.err);
  REQUIRE(first.status == 0);
  const auto jobs = daemon.ctl_json({"jobs", "--all"}).at("jobs").as_array().size();
  hub.stop();
  const Finished second = daemon.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  CHECK(second.status == 0);
  CHECK(second.out == first.out);
  CHECK(second.err.empty());
  CHECK(daemon.ctl_json({"jobs", "--all"}).at("jobs").as_array().size() == jobs);
}

TEST_CASE("modelctl pull prints the folder of the snapshot, with every file", "[e2e][pull]") {
  TestHub hub;
  const std::string commit = hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const Finished pulled = daemon.ctl({"pull", k_repo});
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  const std::filesystem::path folder = without_line_feed(pulled.out);
  for (const auto& entry : std::filesystem::directory_iterator(tiny_verse())) {
    CHECK(file_sha256(folder / entry.path().filename()) == file_sha256(entry.path()));
  }
  CHECK_THAT(pulled.err, Contains("downloading"));

  hub.forget_requests();
  const Finished again = daemon.ctl({"pull", std::string(k_repo) + "@" + commit});
  CHECK(again.out == pulled.out);
  CHECK(hub.requests().empty()); // a commit that is here is not asked for again
}

TEST_CASE("modelctl pull of a branch asks the Hub, and get stays with what was asked",
          "[e2e][pull]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "one"}});
  PrivateDaemon daemon(hub.endpoint());
  const Finished first = daemon.ctl({"get", "org/name:README.md"});
  INFO(first.err);
  REQUIRE(first.status == 0);
  const std::string commit = hub.add_repo("org/name", {{"README.md", "two"}});
  CHECK(daemon.ctl({"get", "org/name:README.md"}).out == first.out);
  const Finished pulled = daemon.ctl({"pull", "org/name"});
  CHECK_THAT(pulled.out, Contains(commit));
  CHECK_THAT(daemon.ctl({"get", "org/name:README.md"}).out, Contains(commit));
  CHECK_THAT(daemon.ctl({"get", "org/name@" + commit.substr(0, 8) + ":README.md"}).out,
             Contains(commit));
}

TEST_CASE("get --json gives one object with what the contract says", "[e2e][json]") {
  TestHub hub;
  const std::string commit = hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const auto got = daemon.ctl_json({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  const auto& variant = got.at("variant").as_object();
  CHECK(variant.at("commit").as_string() == commit);
  CHECK(variant.at("sha256").as_string() == expected_sha256("Q4_K_M"));
  CHECK(variant.at("size").to_number<std::uint64_t>() == 2375456);
  const auto pulled = daemon.ctl_json({"pull", k_repo});
  CHECK(pulled.at("snapshot").at("files").to_number<std::uint64_t>() == 9);
  const auto list = daemon.ctl_json({"ls"});
  CHECK(list.at("snapshots").as_array().size() == 1);
  CHECK(list.at("variants").as_array().size() == 1);
  CHECK(daemon.ctl_json({"show", k_repo}).at("files").as_array().size() == 9);
  CHECK(daemon.ctl_json({"health"}).at("status").as_string() == "ok");
  CHECK(daemon.ctl_json({"usage"}).at("snapshots").to_number<std::uint64_t>() == 1);
  CHECK(daemon.ctl_json({"version"}).at("daemon").as_object().contains("kernel"));
  CHECK(daemon.ctl_json({"pin", k_repo}).at("pin").at("name").as_string() ==
        "modeld--TinyVerse-4M");
  const auto refused = daemon.ctl_json({"rm", k_repo}, 1);
  CHECK(refused.at("error").at("code").as_string() == "conflict");
  CHECK(daemon.ctl({"unpin", k_repo}).status == 0);
  CHECK(daemon.ctl_json({"rm", k_repo}).at("removed").as_array().size() == 2);
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());
}

TEST_CASE("two clients that ask for the same share one job", "[e2e][jobs][rule-8]") {
  TestHub hub;
  hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  Process one = daemon.start_ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  Process two = daemon.start_ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  const auto first = one.wait(std::chrono::seconds(60));
  const auto second = two.wait(std::chrono::seconds(60));
  REQUIRE((first && second));
  CHECK(first->status == 0);
  CHECK(first->out == second->out);
  std::size_t variants = 0;
  const auto answer = daemon.ctl_json({"jobs", "--all"});
  for (const auto& job : answer.at("jobs").as_array()) {
    if (job.at("kind").as_string() == "variant") ++variants;
  }
  CHECK(variants == 1);
}

TEST_CASE("modelctl exec runs a command with the path, under a lease that ends with it",
          "[e2e][exec]") {
  TestHub hub;
  hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const Finished ran =
      daemon.ctl({"exec", "modeld/TinyVerse-4M:Q4_K_M", "--", "sh", "-c", "echo $0; exit 7", "{}"});
  CHECK(ran.status == 7);
  CHECK_THAT(ran.out, EndsWith("TinyVerse-4M-Q4_K_M.gguf\n"));
  Process held = daemon.start_ctl({"exec", "modeld/TinyVerse-4M:Q4_K_M", "--", "sleep", "60"});
  const auto leases = [&daemon] {
    const Finished got =
        run({"curl", "-s", "--unix-socket", daemon.socket(), "http://localhost/v1/leases"});
    return boost::json::parse(got.out).at("leases").as_array().size();
  };
  CHECK(wait_until([&] { return leases() == 1; }));
  held.signal(9);
  CHECK(wait_until([&] { return leases() == 0; }));
  const Finished absent = daemon.ctl({"exec", "modeld/TinyVerse-4M:Q4_K_M", "--", "/no/such"});
  CHECK(absent.status == 3);
  CHECK_THAT(last_line(absent.err), Contains("/no/such") && EndsWith("[not_found]"));
}
