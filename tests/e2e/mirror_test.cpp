// SPDX-License-Identifier: Apache-2.0
// The mirror port: an unmodified Hub client uses the store (hub-protocol.md, appendix B).
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <fstream>
#include <regex>

using namespace modeld::test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

constexpr const char* k_config = "[store]\nmin_free = 0\nreserve_file = 0\n"
                                 "[mirror]\nlisten = \"127.0.0.1:0\"\n";

// The address that the daemon tells in its log.
std::string mirror_of(const PrivateDaemon& daemon) {
  std::string found;
  REQUIRE(wait_until([&] {
    const std::string log = daemon.log();
    std::smatch match;
    if (!std::regex_search(log, match, std::regex("HF_ENDPOINT=(http://127.0.0.1:[0-9]+)"))) {
      return false;
    }
    found = match[1];
    return true;
  }));
  return found;
}

std::string fetch(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"curl", "-s", "-i", "--noproxy", "*", "--max-time", "20"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command).out;
}

boost::json::value body_of(const std::string& answer) {
  return boost::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

} // namespace

TEST_CASE("a second daemon pulls and builds from the first one's mirror", "[e2e][mirror]") {
  TestHub hub;
  const std::string commit = hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon first(hub.endpoint(), k_config);
  REQUIRE(first.ctl({"pull", "modeld/TinyVerse-4M"}).status == 0);
  hub.stop();
  PrivateDaemon second(mirror_of(first));
  const Finished got = second.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  CHECK_THAT(got.out, Contains(commit));
  CHECK(file_sha256(got.out.substr(0, got.out.size() - 1)) == expected_sha256("Q4_K_M"));
}

TEST_CASE("the mirror answers in the Hub's form", "[e2e][mirror][pitfall-33]") {
  TestHub hub;
  const std::string commit =
      hub.add_repo("org/name", {{"README.md", "hello world"}, {"sub dir/a?b.txt", "x"}});
  hub.add_repo("org/name", {{"README.md", "of the request"}}, "refs/pr/1");
  PrivateDaemon daemon(hub.endpoint(), k_config);
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  REQUIRE(daemon.ctl({"pull", "org/name@refs/pr/1"}).status == 0);
  const std::string base = mirror_of(daemon);

  const auto info = body_of(fetch({base + "/api/models/org/name"}));
  CHECK(info.at("sha").as_string() == commit);
  CHECK(info.at("siblings").as_array().size() == 2);
  const auto tree = body_of(fetch({base + "/api/models/org/name/tree/main?recursive=true"}));
  CHECK(tree.as_array().size() == 3); // the folder too
  CHECK(body_of(fetch({base + "/api/models/org/name/refs"})).at("branches").as_array().size() == 1);
  CHECK(body_of(fetch({"-d", "paths=README.md&paths=absent",
                       base + "/api/models/org/name/paths-info/main"}))
            .as_array()
            .size() == 1);

  const std::string file = fetch({base + "/org/name/resolve/main/sub%20dir/a%3Fb.txt"});
  CHECK_THAT(file, StartsWith("HTTP/1.1 200 ") && Contains("X-Repo-Commit: " + commit) &&
                       Contains("\r\n\r\nx"));
  // The git id of "hello world" (hub-protocol.md 1.7).
  const std::string etag = "\"95d09f2b10159347eece71399a7e2e907ea3df4f\"";
  const std::string head = fetch({"-I", base + "/org/name/resolve/main/README.md"});
  CHECK_THAT(head, StartsWith("HTTP/1.1 200 ") && Contains("ETag: " + etag) &&
                       Contains("X-Linked-Size: 11") && Contains("Content-Length: 11"));
  CHECK_THAT(fetch({"-r", "6-8", base + "/org/name/resolve/main/README.md"}),
             StartsWith("HTTP/1.1 206 ") && Contains("bytes 6-8/11") && Contains("\r\n\r\nwor"));
  CHECK_THAT(fetch({"-H", "If-None-Match: " + etag, base + "/org/name/resolve/main/README.md"}),
             StartsWith("HTTP/1.1 304 ") && Contains("X-Repo-Commit"));
  for (const char* revision : {"refs%2Fpr%2F1", "refs/pr/1"}) {
    CHECK_THAT(fetch({base + "/org/name/resolve/" + revision + "/README.md"}),
               Contains("of the request"));
  }
}

TEST_CASE("the mirror lists what is absent, and never says that it does not exist",
          "[e2e][mirror][part][pitfall-25]") {
  TestHub hub;
  hub.add_repo("org/name", {{"a.json", "{}"}, {"big.bin", std::string(100'000, 'b')}});
  PrivateDaemon daemon(hub.endpoint(), k_config);
  REQUIRE(daemon.ctl({"pull", "org/name", "--include", "*.json"}).status == 0);
  const std::string base = mirror_of(daemon);
  const auto tree = body_of(fetch({base + "/api/models/org/name/tree/main?recursive=true"}));
  REQUIRE(tree.as_array().size() == 2);
  CHECK(tree.as_array()[1].at("lfs").at("size").to_number<std::uint64_t>() == 100'000);
  CHECK(body_of(fetch({base + "/api/models/org/name"})).at("siblings").as_array().size() == 2);
  CHECK_THAT(fetch({base + "/org/name/resolve/main/a.json"}), StartsWith("HTTP/1.1 200 "));
  for (const char* method : {"GET", "HEAD"}) {
    const std::string absent = fetch(
        {method == std::string("HEAD") ? "-I" : "-g", base + "/org/name/resolve/main/big.bin"});
    CHECK_THAT(absent, StartsWith("HTTP/1.1 504 ") && Contains("modelctl pull"));
    CHECK(absent.find("X-Error-Code") == std::string::npos);
  }
}

TEST_CASE("the mirror tells missing things apart, and keeps closed ones to itself",
          "[e2e][mirror][rule-5]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "x"}});
  hub.add_repo("org/private", {{"README.md", "secret"}});
  hub.change([](Repositories& repositories) {
    repositories.find("org/private")->is_private = true;
    repositories.add_token("hf_abcdefghijklmnopqrstuvwxyz0123456789", {"org/private"});
  });
  PrivateDaemon daemon(hub.endpoint(), k_config);
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  REQUIRE(
      daemon.ctl({"pull", "org/private"}, {{"HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz0123456789"}})
          .status == 0);
  const std::string base = mirror_of(daemon);
  const auto check = [&](const std::string& path, const std::string& status,
                         const std::string& code) {
    const std::string answer = fetch({base + path});
    INFO(path << ": " << answer);
    CHECK_THAT(answer, StartsWith("HTTP/1.1 " + status + " "));
    if (!code.empty()) CHECK_THAT(answer, Contains("X-Error-Code: " + code));
    CHECK(answer.find("secret") == std::string::npos);
  };
  check("/api/models/org/absent", "404", "RepoNotFound");
  check("/api/models/org/private", "404", "RepoNotFound");
  check("/org/private/resolve/main/README.md", "404", "RepoNotFound");
  check("/api/datasets/org/name", "404", "RepoNotFound");
  check("/org/name/resolve/absent/README.md", "404", "RevisionNotFound");
  check("/org/name/resolve/main/absent", "404", "EntryNotFound");
  check("/org/name/resolve/main/..%2F..%2Fetc%2Fpasswd", "404", "EntryNotFound");
  check("/org/name/resolve/main/%2", "400", "");
  check("/api/whoami-v2", "401", "");
  check("/v1/health", "404", "");
  CHECK_THAT(fetch({"-X", "DELETE", base + "/org/name/resolve/main/README.md"}),
             StartsWith("HTTP/1.1 405 "));
  CHECK_THAT(fetch({"-H", "Host: evil.example", base + "/api/models/org/name"}),
             StartsWith("HTTP/1.1 421 "));
}

TEST_CASE("the mirror listens on loopback only", "[e2e][mirror]") {
  TempDir dir;
  std::ofstream(dir / "modeld.toml") << "[mirror]\nlisten = \"0.0.0.0:8080\"\n"
                                        "[store]\nmin_free = 0\nreserve_file = 0\n";
  const Finished refused = run({MODELD_PROGRAM, "--root", (dir / "root").string(), "--socket",
                                (dir / "s").string(), "--config", (dir / "modeld.toml").string()});
  CHECK(refused.status == 2);
  CHECK_THAT(last_line(refused.err), Contains("0.0.0.0:8080") && Contains("127.0.0.1:PORT"));
}
