// SPDX-License-Identifier: Apache-2.0
// check, inspect and estimate as programs: of files, of what was pulled, of what is on the Hub.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

fs::path copy_of_tiny_verse(const TempDir& dir) {
  const fs::path to = dir / "TinyVerse-4M";
  fs::copy(tiny_verse(), to);
  return to;
}

const json::object& file_named(const json::object& report, std::string_view name) {
  for (const auto& file : report.at("files").as_array()) {
    if (std::string_view(file.at("path").as_string()).ends_with(name)) return file.as_object();
  }
  FAIL("no file " << name << " in " << json::serialize(report));
  throw 0;
}

const json::object& variant_named(const json::object& estimate, std::string_view recipe) {
  for (const auto& one : estimate.at("variants").as_array()) {
    if (one.at("recipe").as_string() == recipe) return one.as_object();
  }
  FAIL("no recipe " << recipe);
  throw 0;
}

std::uint64_t number(const json::object& object, std::string_view name) {
  return object.at(name).to_number<std::uint64_t>();
}

// A daemon that is never asked: the socket of no one.
Finished modelctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {MODELCTL_PROGRAM, "--socket", "/nonexistent/socket"});
  return run(arguments);
}

} // namespace

TEST_CASE("modelctl check accepts a good folder and needs no daemon", "[e2e][check]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  for (const auto& extra : {std::vector<std::string>{}, {"--data"}, {"--profile", "compat"}}) {
    std::vector<std::string> arguments{"check", model.string()};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const Finished checked = modelctl(arguments);
    INFO(checked.out << checked.err);
    CHECK(checked.status == 0);
    CHECK_THAT(checked.err, Contains("0 rejected"));
  }
}

TEST_CASE("modelctl check rejects a truncated shard by rule and offset, status 4", "[e2e][check]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  fs::path shard;
  for (const auto& entry : fs::directory_iterator(model)) {
    if (entry.path().extension() == ".safetensors") shard = entry.path();
  }
  fs::resize_file(shard, fs::file_size(shard) - 1);
  const Finished checked = modelctl({"--json", "check", model.string()});
  CHECK(checked.status == 4);
  const json::object report = json::parse(checked.out).as_object();
  const auto& file = file_named(report, shard.filename().string());
  CHECK(file.at("path").as_string() == shard.string());
  CHECK(file.at("verdict").as_string() == "reject");
  CHECK_FALSE(file.at("findings").as_array().empty());
}

TEST_CASE("modelctl check tells what it cannot open and goes on with the rest", "[e2e][check]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  fs::create_directory(model / "more");
  REQUIRE(::mkfifo((model / "pipe").c_str(), 0600) == 0);
  const Finished missing = modelctl({"check", (dir / "nothing").string()});
  CHECK(missing.status == 3);
  CHECK_THAT(missing.err, Contains("nothing") && Contains("[not_found]"));
  const Finished fifo = modelctl({"--json", "check", (model / "pipe").string()});
  CHECK(fifo.status == 4);
  CHECK_THAT(fifo.out, Contains("GN-01"));
  // Each of them is a finding, and the model beside them is looked at all the same.
  fs::create_symlink("circle", model / "circle.safetensors");
  fs::create_symlink("nowhere", model / "dead.json");
  fs::create_symlink("/etc/passwd", model / "outside.json");
  write(model / "\xff\xfe.json", "{}");
  const Finished odd = modelctl({"--json", "check", model.string()});
  INFO(odd.out << odd.err);
  CHECK(odd.status == 4);
  const json::object report = json::parse(odd.out).as_object();
  for (const char* name : {"pipe", "circle.safetensors", "dead.json", "outside.json"}) {
    const auto& findings = file_named(report, name).at("findings").as_array();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].at("id").as_string() == "GN-01");
  }
  for (const char* name : {"config.json", "tokenizer.model", "\\xFF\\xFE.json"})
    CHECK(file_named(report, name).at("verdict").as_string() == "accept");
}

TEST_CASE("modelctl check never sends control characters of a file to the terminal",
          "[e2e][check]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  write(model / "evil\x1b[31m\xe2\x80\xae.safetensors", "nonsense");
  for (const char* form : {"--quiet", "--json"}) {
    const Finished checked = modelctl({form, "check", model.string()});
    CHECK(checked.status == 4);
    CHECK(checked.out.find('\x1b') == std::string::npos);
    CHECK(checked.out.find("\xe2\x80\xae") == std::string::npos);
  }
}

TEST_CASE("modelctl check survives a file that shrinks while it is read (GN-07)",
          "[e2e][check][GN-07]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  const fs::path large = model / "large.gguf";
  const Finished made =
      modelctl({"convert", tiny_verse().string(), "--outtype", "f32", "-o", large.string()});
  REQUIRE(made.status == 0);
  std::vector<std::string> all{"--json", "check", "--data", "-j", "1"};
  for (int i = 0; i < 50; ++i)
    all.push_back(large.string());
  std::thread shrink([&large] {
    for (std::uint64_t size = fs::file_size(large); size > 4096; size /= 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      fs::resize_file(large, size);
    }
  });
  const Finished checked = modelctl(all);
  shrink.join();
  INFO(checked.out.substr(0, 2000) << checked.err);
  CHECK(checked.status == 4);
  CHECK_FALSE(json::parse(checked.out).as_object().at("files").as_array().empty());
}

TEST_CASE("modelctl check takes the ref of a snapshot that is here", "[e2e][check]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const Finished before = daemon.ctl({"check", "modeld/TinyVerse-4M"});
  CHECK(before.status == 3);
  CHECK_THAT(before.err, Contains("modelctl ls"));
  REQUIRE(daemon.ctl({"pull", "modeld/TinyVerse-4M"}).status == 0);
  const Finished checked = daemon.ctl({"check", "modeld/TinyVerse-4M", "--data"});
  INFO(checked.out << checked.err);
  CHECK(checked.status == 0);
  CHECK_THAT(checked.out, Contains("config.json"));
  const Finished estimated = daemon.ctl({"estimate", "modeld/TinyVerse-4M"});
  CHECK(estimated.status == 0);
  CHECK_THAT(estimated.out, Contains("Q4_K_M"));
}

TEST_CASE("modelctl estimate says the exact size of every recipe", "[e2e][estimate]") {
  const TempDir dir;
  const Finished told = modelctl({"--json", "estimate", tiny_verse().string(), "--context", "100"});
  INFO(told.err);
  REQUIRE(told.status == 0);
  const json::object estimate = json::parse(told.out).as_object();
  CHECK(number(estimate, "context") == 100);
  for (const char* type : {"Q4_K_M", "Q8_0", "BF16", "F32", "IQ4_XS"}) {
    INFO(type);
    const fs::path out = dir / (std::string(type) + ".gguf");
    REQUIRE(modelctl({"convert", tiny_verse().string(), "--outtype", type, "-o", out.string()})
                .status == 0);
    const auto& variant = variant_named(estimate, type);
    CHECK(number(variant, "file_bytes") == fs::file_size(out));
    CHECK(number(variant, "memory_bytes") ==
          fs::file_size(out) + number(estimate, "cache_bytes") + number(estimate, "buffer_bytes"));
  }
  CHECK_THAT(std::string(variant_named(estimate, "IQ1_S").at("note").as_string()),
             Contains("importance"));
  const Finished file = modelctl({"--json", "estimate", (dir / "Q8_0.gguf").string()});
  REQUIRE(file.status == 0);
  const json::object of_file = json::parse(file.out).as_object();
  CHECK(of_file.at("variants").as_array().size() == 1);
  CHECK(number(of_file, "parameters") == number(estimate, "parameters"));
}

TEST_CASE("modelctl estimate says why a model cannot be converted", "[e2e][estimate]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  write(model / "config.json", R"({"architectures":["NobodyKnowsThis"],"model_type":"nobody"})");
  const Finished told = modelctl({"estimate", model.string()});
  CHECK(told.status != 0);
  CHECK_THAT(told.err, Contains("NobodyKnowsThis") && Contains("[unsupported]"));
}

TEST_CASE("modelctl inspect shows metadata, one key, and JSON", "[e2e][inspect]") {
  const TempDir dir;
  const fs::path gguf = dir / "m.gguf";
  REQUIRE(modelctl({"convert", tiny_verse().string(), "--outtype", "q8_0", "-o", gguf.string()})
              .status == 0);
  const Finished text = modelctl({"inspect", gguf.string()});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("general.architecture") && Contains("token_embd.weight") &&
                           Contains("Q8_0") && Contains("bits a weight"));
  const Finished key = modelctl({"inspect", gguf.string(), "--key", "general.architecture"});
  CHECK(key.out == "llama\n");
  const Finished whole = modelctl({"--json", "inspect", gguf.string()});
  CHECK(json::parse(whole.out).as_object().contains("tensors"));
  const Finished wrong = modelctl({"inspect", gguf.string(), "--key", "no.such"});
  CHECK(wrong.status == 3);
  CHECK_THAT(wrong.err, Contains("no.such"));
  CHECK(modelctl({"inspect", (dir / "nothing").string()}).status == 3);
  CHECK(modelctl({"inspect", dir.path().string()}).status == 2);
  write(dir / "bad.gguf", "GGUF\3");
  CHECK(modelctl({"inspect", (dir / "bad.gguf").string()}).status == 4);
}

TEST_CASE("modelctl check --remote reads headers only, and says what a pull would bring",
          "[e2e][check][remote]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const json::object report = daemon.ctl_json({"check", "--remote", "modeld/TinyVerse-4M"});
  for (const auto& file : report.at("files").as_array()) {
    CHECK(file.at("verdict").as_string() != "reject");
  }
  CHECK(number(report, "bytes_read") < number(report, "bytes") / 2);
  const auto& estimate = report.at("estimate").as_object();
  const json::object pulled = daemon.ctl_json({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  CHECK(number(variant_named(estimate, "Q4_K_M"), "file_bytes") ==
        number(pulled.at("variant").as_object(), "size"));
  const Finished text = daemon.ctl({"check", "--remote", "modeld/TinyVerse-4M"});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("Q4_K_M") && Contains("MEMORY"));
  CHECK_THAT(text.err, Contains("bytes were read"));
}

TEST_CASE("modelctl check --remote leaves nothing behind and finds what a pull would refuse",
          "[e2e][check][remote]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  fs::path shard;
  for (const auto& entry : fs::directory_iterator(model)) {
    if (entry.path().extension() == ".safetensors") shard = entry.path();
  }
  fs::resize_file(shard, fs::file_size(shard) - 4096);
  TestHub hub;
  hub.add_folder("org/short", model);
  write(model / "config.json", R"({"architectures":["NobodyKnowsThis"],"model_type":"nobody"})");
  hub.add_folder("org/unknown", model);
  PrivateDaemon daemon(hub.endpoint());
  const Finished checked = daemon.ctl({"--json", "check", "--remote", "org/short"});
  CHECK(checked.status == 4);
  const auto report = json::parse(checked.out).as_object();
  CHECK(file_named(report, shard.filename().string()).at("verdict").as_string() == "reject");
  CHECK(daemon.ctl({"check", "--remote", "org/unknown"}).status == 4);
  CHECK(daemon.ctl({"check", "--remote", "org/nowhere"}).status == 3);
  CHECK(daemon.ctl({"check", "--remote", "--data", "org/short"}).status == 2);
  CHECK(daemon.ctl({"check", "--remote", "org/short:Q4_K_M"}).status == 2);
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());
  CHECK(fs::is_empty(daemon.root() / "blobs" / "sha256"));
}
