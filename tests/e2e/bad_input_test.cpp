// SPDX-License-Identifier: Apache-2.0
// What each kind of bad input gets: exit status, last line, hint.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

using namespace modeld::test;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

Files tiny_files() {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(tiny_verse())) {
    files.emplace_back(entry.path().filename().string(), read_file(entry.path()));
  }
  return files;
}

std::string& file(Files& files, const std::string& name) {
  for (auto& [path, text] : files) {
    if (path == name) return text;
  }
  throw std::runtime_error("no file " + name);
}

void check_error(const Finished& finished, int status, const std::string& code) {
  INFO(finished.err);
  CHECK(finished.status == status);
  CHECK(finished.out.empty());
  CHECK_THAT(last_line(finished.err), StartsWith("error: ") && EndsWith("[" + code + "]"));
}

} // namespace

TEST_CASE("an unknown repository, revision, file and quantization are told apart",
          "[e2e][bad-input]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());

  const Finished repo = daemon.ctl({"get", "modeld/absent:Q4_K_M"});
  check_error(repo, 3, "not_found");
  CHECK_THAT(repo.err, Contains("modeld/absent"));

  const Finished revision = daemon.ctl({"get", "modeld/TinyVerse-4M@absent:Q4_K_M"});
  check_error(revision, 3, "not_found");
  CHECK_THAT(revision.err, Contains("absent"));

  const Finished absent = daemon.ctl({"get", "modeld/TinyVerse-4M:absent.json"});
  check_error(absent, 3, "not_found");
  CHECK_THAT(absent.err, Contains("'absent.json'") && Contains("config.json"));

  const Finished quantization = daemon.ctl({"get", "modeld/TinyVerse-4M:Q4_K_X"});
  check_error(quantization, 2, "invalid_argument");
  CHECK_THAT(quantization.err, Contains("Q4_K_X") && Contains("Q4_K_M"));
}

TEST_CASE("wrong usage is exit status 2, with or without a daemon", "[e2e][bad-input]") {
  TestHub hub;
  PrivateDaemon daemon(hub.endpoint());
  for (const auto& arguments : std::vector<std::vector<std::string>>{{},
                                                                     {"frob"},
                                                                     {"get"},
                                                                     {"get", "a", "b"},
                                                                     {"get", "--frob", "a/b"},
                                                                     {"get", "a//b"},
                                                                     {"get", "../etc"},
                                                                     {"pull", "a/b@"},
                                                                     {"watch"},
                                                                     {"exec", "a/b"}}) {
    const Finished finished = daemon.ctl(arguments);
    INFO(finished.err);
    CHECK(finished.status == 2);
    CHECK(finished.out.empty());
    CHECK_THAT(last_line(finished.err), EndsWith("[invalid_argument]"));
  }
  const Finished selector = daemon.ctl({"pull", "a/b:Q4_K_M"});
  check_error(selector, 2, "invalid_argument");
  CHECK_THAT(selector.err, Contains("modelctl get a/b:Q4_K_M"));
}

TEST_CASE("a repository without weights, or with pickles only, is refused before it is fetched",
          "[e2e][bad-input][PK-01]") {
  TestHub hub;
  hub.add_repo("org/empty", {{"config.json", "{}"}, {"README.md", "x"}});
  hub.add_repo("org/pickle",
               {{"config.json", "{}"}, {"pytorch_model.bin", std::string(2000, 'x')}});
  PrivateDaemon daemon(hub.endpoint());

  const Finished empty = daemon.ctl({"get", "org/empty:Q4_K_M"});
  check_error(empty, 3, "not_found");
  CHECK_THAT(empty.err, Contains("org/empty") && Contains("weights"));

  const Finished pickle = daemon.ctl({"get", "org/pickle:Q4_K_M"});
  check_error(pickle, 1, "unsupported");
  CHECK_THAT(pickle.err, Contains("pytorch_model.bin"));
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());
}

TEST_CASE("an unsupported architecture is named, with what is supported nearby",
          "[e2e][bad-input]") {
  TestHub hub;
  Files files = tiny_files();
  std::string& config = file(files, "config.json");
  const auto at = config.find("LlamaForCausalLM");
  REQUIRE(at != std::string::npos);
  config.replace(at, 16, "LlamoForCausalLM");
  hub.add_repo("org/llamo", files);
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"get", "org/llamo:Q4_K_M"});
  check_error(got, 1, "unsupported");
  CHECK_THAT(got.err, Contains("LlamoForCausalLM") && Contains("LlamaForCausalLM"));
}

TEST_CASE("a type that needs an importance matrix is refused before the weights come",
          "[e2e][bad-input]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"get", "modeld/TinyVerse-4M:IQ2_XXS"});
  check_error(got, 2, "invalid_argument");
  CHECK_THAT(last_line(got.err), Contains("IQ2_XXS") && Contains("importance matrix"));
  CHECK_THAT(got.err, Contains("modelctl quantize --imatrix"));
  for (const auto& seen : hub.requests()) {
    CHECK(seen.request.target.find("/resolve/") == std::string::npos);
  }
}

TEST_CASE("a truncated shard is malformed, and nothing is visible", "[e2e][bad-input]") {
  TestHub hub;
  Files files = tiny_files();
  std::string& shard = file(files, "model-00002-of-00002.safetensors");
  shard.resize(shard.size() - 100);
  hub.add_repo("org/cut", files);
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"get", "org/cut:Q4_K_M"});
  check_error(got, 4, "malformed");
  CHECK_THAT(got.err, Contains("model-00002-of-00002.safetensors"));
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());
}

TEST_CASE("a shard that the index names and the repository lacks is named", "[e2e][bad-input]") {
  TestHub hub;
  Files files = tiny_files();
  std::erase_if(files, [](const auto& one) { return one.first.starts_with("model-00002"); });
  hub.add_repo("org/missing", files);
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"get", "org/missing:Q4_K_M"});
  INFO(got.err);
  CHECK((got.status == 3 || got.status == 4));
  CHECK_THAT(got.err, Contains("model-00002-of-00002.safetensors"));
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());
}

TEST_CASE("no space is refused before the download, with the numbers", "[e2e][bad-input]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint(), "[store]\nmin_free = \"900TiB\"\nreserve_file = 0\n");
  const Finished got = daemon.ctl({"pull", "modeld/TinyVerse-4M"});
  check_error(got, 6, "no_space");
  const Finished json = daemon.ctl({"--json", "pull", "modeld/TinyVerse-4M"});
  const auto error = boost::json::parse(json.out).at("error");
  CHECK(error.at("details").as_object().contains("needed"));
  CHECK(error.at("details").as_object().contains("free"));
}

TEST_CASE("a socket that is not there says how to start the daemon", "[e2e][bad-input]") {
  TempDir dir;
  const std::string socket = (dir / "absent.sock").string();
  const Finished got = run({MODELCTL_PROGRAM, "--socket", socket, "health"});
  check_error(got, 8, "unreachable");
  CHECK_THAT(got.err, Contains(socket) && Contains("systemctl start modeld"));
  const Finished json = run({MODELCTL_PROGRAM, "--socket", socket, "--json", "ls"});
  CHECK(json.status == 8);
  const auto error = boost::json::parse(json.out).at("error").as_object();
  CHECK(error.at("code").as_string() == "unreachable");
  CHECK_FALSE(error.at("hint").as_string().empty());
  CHECK(error.at("details").is_object());
}

TEST_CASE("a Hub that is not there is a network error", "[e2e][bad-input]") {
  std::string endpoint;
  {
    TestHub hub;
    endpoint = hub.endpoint();
  }
  PrivateDaemon daemon(endpoint, "[store]\nmin_free = 0\nreserve_file = 0\n[hub]\n"
                                 "max_attempts = 1\nretry_budget = \"0ms\"\n");
  const Finished got = daemon.ctl({"get", "org/name:Q4_K_M"});
  CHECK(got.status == 7);
}
