// SPDX-License-Identifier: Apache-2.0
// get --mmproj: the projector of a multimodal model, built from its weights or ready made.
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"
#include "tests/quantize/golden_snapshot.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

using namespace modeld::test;
using Catch::Contains;
using Catch::EndsWith;
namespace fs = std::filesystem;

namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

fs::path golden(const std::string& name) {
  return fs::path(MODELD_TEST_DATA) / "golden" / name;
}

Files snapshot(const std::string& name) {
  const MemoryFiles files = golden_snapshot(golden(name), name);
  Files out;
  for (const auto& entry : files.entries()) {
    const auto bytes = files.bytes(entry.path).value();
    out.emplace_back(entry.path,
                     std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  return out;
}

// The SHA-256 that the reference's file has.
std::string expected(const std::string& name, const std::string& file) {
  const auto all = boost::json::parse(read_file(golden(name) / "expected.json"));
  for (const auto& output : all.at("outputs").as_array()) {
    if (output.at("file").as_string() == file) return std::string(output.at("sha256").as_string());
  }
  throw std::runtime_error("no output " + file);
}

// One path and a line feed.
std::string path_in(const Finished& got) {
  INFO(got.err);
  REQUIRE(got.status == 0);
  REQUIRE(std::count(got.out.begin(), got.out.end(), '\n') == 1);
  return got.out.substr(0, got.out.size() - 1);
}

// A GGUF file of no tensors, told apart by a text in it.
std::string gguf(const std::string& name) {
  const auto number = [](std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
      text += static_cast<char>(value >> (8 * i));
    }
    return text;
  };
  const std::string key = "general.name";
  return "GGUF" + number(3, 4) + number(0, 8) + number(1, 8) + number(key.size(), 8) + key +
         number(8, 4) + number(name.size(), 8) + name;
}

} // namespace

TEST_CASE("get --mmproj prints the path of the projector that the reference would make",
          "[e2e][get][mmproj]") {
  TestHub hub;
  const std::string name = "gemma-3-tiny-it";
  const std::string repo = "tiny/" + name;
  Files files = snapshot(name);
  files.emplace_back("original/consolidated.bin", "not for a conversion");
  hub.add_repo(repo, files);
  PrivateDaemon daemon(hub.endpoint());

  const std::string path = path_in(daemon.ctl({"get", repo, "--mmproj"}));
  CHECK_THAT(path, EndsWith("/mmproj-gemma-3-tiny-it-AUTO.gguf"));
  CHECK(file_sha256(path) == expected(name, "mmproj-auto.gguf"));
  // The folder has what the projector reads, and no more than a conversion does.
  CHECK(fs::exists(fs::path(path).parent_path() / "preprocessor_config.json"));
  CHECK_FALSE(fs::exists(fs::path(path).parent_path() / "original"));

  CHECK(file_sha256(path_in(daemon.ctl({"get", repo + ":F16", "--mmproj"}))) ==
        expected(name, "mmproj-f16.gguf"));
  // The model is another file, under a key of its own.
  const std::string model = path_in(daemon.ctl({"get", repo + ":AUTO"}));
  CHECK(model != path);
  CHECK(file_sha256(model) == expected(name, "auto.gguf"));

  // Built already: neither a job nor the Hub.
  hub.stop();
  const Finished again = daemon.ctl({"get", repo, "--mmproj"});
  CHECK(path_in(again) == path);
  CHECK(again.err.empty());
  CHECK_THAT(daemon.ctl({"ls"}).out, Contains(":AUTO (projector)") && Contains(":F16 (projector)"));
  const auto built = daemon.ctl_json({"get", repo + ":F16", "--mmproj"});
  CHECK(built.at("variant").at("recipe").as_string() == "F16;mmproj=1");
}

TEST_CASE("a projector that cannot be made is refused before the weights come",
          "[e2e][get][mmproj]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"get", "modeld/TinyVerse-4M", "--mmproj"});
  CHECK(got.status == 1);
  CHECK_THAT(last_line(got.err), Contains("the projector of 'LlamaForCausalLM' is not supported") &&
                                     EndsWith("[unsupported]"));
  CHECK(daemon.ctl_json({"ls"}).at("snapshots").as_array().empty());
}

TEST_CASE("get --mmproj of ready made models takes the file that belongs to the model",
          "[e2e][get][mmproj]") {
  TestHub hub;
  hub.add_repo("org/ready", {{"m-Q4_K_M.gguf", gguf("q4")},
                             {"m-Q8_0.gguf", gguf("q8")},
                             {"mmproj-F16.gguf", gguf("p16")},
                             {"mmproj-m-Q8_0.gguf", gguf("p8")},
                             {"deep/m-BF16.gguf", gguf("bf16")},
                             {"deep/mmproj-F32.gguf", gguf("p32")}});
  hub.add_repo("org/alone", {{"m-Q4_K_M.gguf", gguf("q4")}});
  PrivateDaemon daemon(hub.endpoint());
  const auto projector = [&](const std::string& selector) {
    return read_file(path_in(daemon.ctl({"get", "org/ready" + selector, "--mmproj"})));
  };
  CHECK(projector(":Q8_0") == gguf("p8"));
  CHECK(projector(":BF16") == gguf("p32"));
  CHECK(projector(":deep/m-BF16.gguf") == gguf("p32"));
  CHECK(projector("") == projector(":Q4_K_M"));
  CHECK(read_file(path_in(daemon.ctl({"get", "org/ready:Q8_0"}))) == gguf("q8"));

  const Finished none = daemon.ctl({"get", "org/alone:Q4_K_M", "--mmproj"});
  CHECK(none.status == 3);
  CHECK_THAT(last_line(none.err), Contains("m-Q4_K_M.gguf") && EndsWith("[not_found]"));

  hub.stop(); // what is here is found without it
  CHECK(projector(":q8_0") == gguf("p8"));
  const Finished removed = daemon.ctl({"rm", "org/ready:BF16"});
  CHECK(removed.status == 0);
  CHECK(daemon.ctl({"get", "org/ready:BF16", "--mmproj"}).status != 0);
}
