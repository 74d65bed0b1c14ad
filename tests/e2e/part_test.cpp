// SPDX-License-Identifier: Apache-2.0
// Snapshots that hold a part of what the Hub lists: what a conversion needs, or what patterns
// chose.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

using namespace modeld::test;
using Catch::Contains;
using Catch::EndsWith;
namespace fs = std::filesystem;

namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

constexpr const char* k_repo = "modeld/TinyVerse-4M";
constexpr const char* k_first_shard = "model-00001-of-00002.safetensors";

Files tiny_files() {
  Files files;
  for (const auto& entry : fs::directory_iterator(tiny_verse())) {
    files.emplace_back(entry.path().filename().string(), read_file(entry.path()));
  }
  return files;
}

/// TinyVerse with everything beside it that repositories tend to hold twice.
Files with_duplicates() {
  Files files = tiny_files();
  const std::string heavy(200'000, 'x');
  for (const char* path : {"original/consolidated.00.pth", "pytorch_model.bin", "onnx/model.onnx",
                           "model.onnx", "consolidated.safetensors", "tf_model.h5",
                           "flax_model.msgpack", "TinyVerse.Q4_0.gguf.bak"}) {
    files.emplace_back(path, heavy + path);
  }
  files.emplace_back("LICENSE", "free");
  files.emplace_back("images/logo.png", "png");
  return files;
}

bool asked_for(const TestHub& hub, const std::string& part) {
  const auto all = hub.requests();
  return std::any_of(all.begin(), all.end(), [&](const SeenRequest& seen) {
    return seen.request.target.find(part) != std::string::npos;
  });
}

std::string without_line_feed(const std::string& text) {
  REQUIRE_THAT(text, EndsWith("\n"));
  return text.substr(0, text.size() - 1);
}

std::uint64_t number(const boost::json::object& object, const char* name) {
  return object.at(name).to_number<std::uint64_t>();
}

} // namespace

TEST_CASE("get takes what the conversion needs, and says what it left", "[e2e][part][A14]") {
  TestHub hub;
  hub.add_repo(k_repo, with_duplicates());
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"get", std::string(k_repo) + ":Q4_K_M"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  const std::string path = without_line_feed(got.out);
  CHECK(file_sha256(path) == expected_sha256("Q4_K_M"));
  for (const char* left : {"original", "pytorch_model.bin", "onnx", "consolidated", "tf_model.h5",
                           "msgpack", "logo.png", ".gguf.bak"}) {
    INFO(left);
    CHECK_FALSE(asked_for(hub, left));
  }
  CHECK(asked_for(hub, "LICENSE"));
  CHECK_THAT(got.err, Contains("what the conversion needs") && Contains("took 10 of 19 files"));

  const auto shown = daemon.ctl_json({"show", k_repo});
  CHECK(number(shown.at("snapshot").as_object(), "absent") == 9);
  CHECK(shown.at("absent").as_array().size() == 9);
  CHECK(shown.at("files").as_array().size() == 10);
  CHECK_THAT(daemon.ctl({"show", k_repo}).out, Contains("not here"));
  CHECK_THAT(daemon.ctl({"ls"}).out, Contains("10 of 19"));
  CHECK(daemon.ctl_json({"fsck"}).at("findings").as_array().empty());

  hub.forget_requests();
  const Finished again = daemon.ctl({"get", std::string(k_repo) + ":Q4_K_M"});
  CHECK(again.out == got.out);
  CHECK(daemon.ctl({"get", std::string(k_repo) + ":Q8_0"}).status == 0); // the same sources
  CHECK(hub.requests().empty());

  // A pull brings the rest, and only that.
  const Finished pulled = daemon.ctl({"pull", k_repo});
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  CHECK_FALSE(asked_for(hub, "safetensors/"));
  CHECK_FALSE(asked_for(hub, k_first_shard));
  CHECK(asked_for(hub, "pytorch_model.bin"));
  for (const auto& [name, text] : with_duplicates()) {
    CHECK(read_file(fs::path(without_line_feed(pulled.out)) / name) == text);
  }
  CHECK(number(daemon.ctl_json({"show", k_repo}).at("snapshot").as_object(), "absent") == 0);
  CHECK(daemon.ctl({"get", std::string(k_repo) + ":Q4_K_M"}).out == got.out);
}

TEST_CASE("a build has the same key, whatever else of the repository is here", "[e2e][part]") {
  TestHub hub;
  hub.add_repo(k_repo, with_duplicates());
  const std::string ref = std::string(k_repo) + ":Q8_0";
  PrivateDaemon part(hub.endpoint());
  PrivateDaemon whole(hub.endpoint());
  REQUIRE(whole.ctl({"pull", k_repo}).status == 0);
  const auto from_part = part.ctl_json({"get", ref}).at("variant").as_object();
  const auto from_whole = whole.ctl_json({"get", ref}).at("variant").as_object();
  CHECK(from_part.at("key") == from_whole.at("key"));
  CHECK(from_part.at("sha256") == from_whole.at("sha256"));
  CHECK_FALSE(part.ctl_json({"ls"}).at("snapshots").as_array().empty());
}

TEST_CASE("a partly pulled snapshot survives kill -9 and a rebuilt index", "[e2e][part][restart]") {
  TestHub hub;
  hub.add_repo("org/name", {{"a.json", "{}"}, {"b.bin", std::string(100, 'b')}});
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/name", "--include", "*.json"}).status == 0);
  daemon.kill();
  for (const char* suffix : {"", "-wal", "-shm"}) {
    fs::remove(daemon.root() / (std::string("index.sqlite") + suffix));
  }
  daemon.start();
  const Finished mended = daemon.ctl({"fsck", "--repair"});
  INFO(mended.err << mended.out);
  const auto snapshot = daemon.ctl_json({"show", "org/name"}).at("snapshot").as_object();
  CHECK(number(snapshot, "files") == 1);
  CHECK(number(snapshot, "absent") == 1);
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  CHECK(number(daemon.ctl_json({"show", "org/name"}).at("snapshot").as_object(), "absent") == 0);
}

TEST_CASE("pull takes files by patterns, and a later pull adds to them", "[e2e][part][C12]") {
  TestHub hub;
  const std::string commit = hub.add_repo("org/name", {{"config.json", "{}"},
                                                       {"a/x.json", "[1]"},
                                                       {"a/y.bin", std::string(50'000, 'y')},
                                                       {"README.md", "read"}});
  PrivateDaemon daemon(hub.endpoint());
  const std::string ref = "org/name@" + commit;

  const Finished none = daemon.ctl({"pull", ref, "--include", "*.txt"});
  CHECK(none.status == 3);
  CHECK_THAT(last_line(none.err), Contains("*.txt") && EndsWith("[not_found]"));
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());

  const Finished some = daemon.ctl({"pull", ref, "--include", "*.json", "--exclude", "a/*"});
  INFO(some.err);
  REQUIRE(some.status == 0);
  const fs::path folder = without_line_feed(some.out);
  CHECK(read_file(folder / "config.json") == "{}");
  CHECK_FALSE(fs::exists(folder / "a"));
  CHECK_THAT(some.err, Contains("took 1 of 4 files") && Contains("as the patterns say") &&
                           Contains("a/y.bin"));

  hub.forget_requests();
  CHECK(daemon.ctl({"pull", ref, "--include", "config.*"}).out == some.out);
  CHECK(hub.requests().empty()); // all of it is here

  const auto more = daemon.ctl_json({"pull", ref, "--include", "a/", "--include", "config.json"});
  CHECK(number(more.at("snapshot").as_object(), "files") == 3);
  CHECK(number(more.at("snapshot").as_object(), "absent_bytes") == 4);
  CHECK(number(more.at("pull").at("choice").as_object(), "left") == 1);
  CHECK_FALSE(asked_for(hub, "config.json"));
  CHECK_FALSE(asked_for(hub, "/tree/")); // the list is known
  CHECK(read_file(folder / "a/y.bin") == std::string(50'000, 'y'));

  hub.forget_requests();
  REQUIRE(daemon.ctl({"pull", ref}).status == 0);
  CHECK(read_file(folder / "README.md") == "read");
  CHECK(daemon.ctl_json({"fsck"}).at("findings").as_array().empty());
}

TEST_CASE("one shard of several may be pulled alone, and is checked alone", "[e2e][part]") {
  TestHub hub;
  hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const Finished one = daemon.ctl({"pull", k_repo, "--include", k_first_shard});
  INFO(one.err);
  REQUIRE(one.status == 0);
  CHECK(file_sha256(fs::path(without_line_feed(one.out)) / k_first_shard) ==
        file_sha256(tiny_verse() / k_first_shard));
  hub.forget_requests();
  const Finished got = daemon.ctl({"get", std::string(k_repo) + ":Q4_K_M"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  CHECK(file_sha256(without_line_feed(got.out)) == expected_sha256("Q4_K_M"));
  CHECK_FALSE(asked_for(hub, k_first_shard));

  Files broken = tiny_files();
  for (auto& [path, text] : broken) {
    if (path == k_first_shard) text.resize(text.size() - 100);
  }
  hub.add_repo("org/broken", broken);
  const Finished refused = daemon.ctl({"pull", "org/broken", "--include", k_first_shard});
  CHECK(refused.status == 4);
  CHECK_THAT(last_line(refused.err), Contains(k_first_shard) && EndsWith("[malformed]"));
}

TEST_CASE("an unsupported architecture is refused before the weights are asked for",
          "[e2e][part][bad-input]") {
  TestHub hub;
  Files files = with_duplicates();
  for (auto& [path, text] : files) {
    const auto at = path == "config.json" ? text.find("LlamaForCausalLM") : std::string::npos;
    if (at != std::string::npos) text.replace(at, 16, "LlamoForCausalLM");
  }
  hub.add_repo("org/llamo", files);
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"get", "org/llamo:Q4_K_M"});
  CHECK(got.status == 1);
  CHECK_THAT(got.err, Contains("LlamoForCausalLM") && Contains("LlamaForCausalLM"));
  CHECK_THAT(last_line(got.err), EndsWith("[unsupported]"));
  CHECK(asked_for(hub, "config.json"));
  CHECK_FALSE(asked_for(hub, ".safetensors?"));
  CHECK_FALSE(asked_for(hub, k_first_shard));
}

TEST_CASE("a file that the snapshot lacks is fetched when it is asked for", "[e2e][part]") {
  TestHub hub;
  hub.add_repo(k_repo, with_duplicates());
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"get", std::string(k_repo) + ":Q8_0"}).status == 0);
  const Finished got = daemon.ctl({"get", std::string(k_repo) + ":images/logo.png"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  CHECK(read_file(without_line_feed(got.out)) == "png");
  hub.forget_requests();
  CHECK(daemon.ctl({"get", std::string(k_repo) + ":images/logo.png"}).out == got.out);
  CHECK(hub.requests().empty());
}

TEST_CASE("E13 without network an incomplete snapshot says which files are missing",
          "[e2e][part][E13]") {
  TestHub hub;
  hub.add_folder(k_repo, tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "--include", "*.json", k_repo}).status == 0);
  const auto commit = daemon.ctl_json({"show", k_repo}).at("snapshot").at("commit").as_string();
  daemon.stop();
  std::ofstream(daemon.dir() / "modeld.toml", std::ios::app) << "[hub]\noffline = \"yes\"\n";
  daemon.start();
  const auto before = hub.requests().size();
  const std::string pinned = std::string(k_repo) + "@" + std::string(commit);
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"get", std::string(k_repo) + ":Q8_0"}, {"get", pinned + ":Q8_0"}, {"pull", pinned}}) {
    const Finished refused = daemon.ctl(arguments);
    CHECK(refused.status == 7);
    CHECK_THAT(refused.err, Contains("not here: ") && Contains("'tokenizer.model'") &&
                                Contains(std::string("'") + k_first_shard + "'") &&
                                Contains("offline mode is on"));
  }
  const Finished one = daemon.ctl({"get", pinned + ":README.md"});
  CHECK_THAT(one.err, Contains("1 of its files is not here: 'README.md'"));
  CHECK(daemon.ctl({"get", pinned + ":config.json"}).status == 0);
  CHECK(hub.requests().size() == before);
}
