// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/metadata.hpp"
#include "quantize/tokenizer/tokenizer.hpp"

#include "tests/quantize/tokenizer/golden_kv.hpp"
#include "tests/quantize/tokenizer/golden_rules.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;
namespace fs = std::filesystem;

namespace {

struct GoldenCase {
  std::string name;
  test::MemoryFiles files;
  boost::json::object expected;
};

std::vector<fs::path> case_folders() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(std::string(MODELD_TEST_DATA) + "/golden")) {
    if (fs::exists(entry.path() / "expected.json")) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

GoldenCase load_case(const fs::path& folder) {
  auto expected = test::read_json_file(folder / "expected.json").as_object();
  const std::string dir(expected.at("model_dir").as_string());
  return {folder.filename().string(),
          test::MemoryFiles::from_folder(folder / "snapshot" / dir, 64U << 20U),
          std::move(expected)};
}

std::vector<std::string> arguments(const boost::json::object& output) {
  std::vector<std::string> out;
  if (!output.contains("argv")) return out;
  for (const auto& each : output.at("argv").as_array()) {
    out.emplace_back(each.as_string());
  }
  return out;
}

bool has(const std::vector<std::string>& argv, std::string_view argument) {
  return std::find(argv.begin(), argv.end(), argument) != argv.end();
}

/// The first output of a conversion of the language model that the reference makes.
const boost::json::object* text_output(const boost::json::object& expected) {
  for (const auto& each : expected.at("outputs").as_array()) {
    const auto& output = each.as_object();
    const auto argv = arguments(output);
    if (output.at("tool").as_string() == "convert" && output.contains("kv") &&
        !has(argv, "--mmproj")) {
      return &output;
    }
  }
  return nullptr;
}

std::string text_of(const boost::json::object& object, std::string_view name) {
  const auto* found = object.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::string architecture_of(const boost::json::object& expected) {
  const auto* list = expected.if_contains("architecture");
  if (list == nullptr || !list->is_array() || list->get_array().empty()) return {};
  const auto& first = list->get_array().front();
  return first.is_string() ? std::string(first.get_string()) : std::string();
}

boost::json::object raw_config(const test::MemoryFiles& files) {
  if (!files.contains("config.json")) return {};
  const auto bytes = files.bytes("config.json").value();
  boost::json::error_code ec;
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // One of the configurations has a number that JSON does not know.
  if (const auto at = text.find("Infinity"); at != std::string::npos) text.replace(at, 8, "null");
  const auto value = boost::json::parse(text, ec);
  return ec || !value.is_object() ? boost::json::object() : value.get_object();
}

std::string gguf_architecture(const boost::json::object& output) {
  for (const auto& kv : output.at("kv").as_array()) {
    if (kv.at("key").as_string() == "general.architecture") {
      return std::string(kv.at("value").as_string());
    }
  }
  return {};
}

void check_tokenizer(const GoldenCase& golden, const boost::json::object& output) {
  const auto expected = test::describe_golden(output.at("kv").as_array(), {"tokenizer."});
  if (expected.empty()) return;
  const auto config = test::golden_config(raw_config(golden.files));
  auto rule = test::golden_rule(architecture_of(golden.expected), config);
  TokenizerRequest request;
  request.architecture = gguf_architecture(output);
  request.pre = text_of(golden.expected, "pre");
  request.force = output.contains("may_refuse");
  request.mistral_format = has(arguments(output), "--mistral-format");
  if (request.mistral_format) rule.kind = TokenizerKind::llama;
  const auto result = read_tokenizer(golden.files, config, rule, request);
  if (!result) {
    FAIL_CHECK(golden.name << ": " << result.error().message);
    return;
  }
  INFO(golden.name);
  CHECK(test::describe(result->kv, {"tokenizer."}) == expected);
}

} // namespace

TEST_CASE("read_tokenizer equals the reference for every golden case",
          "[quantize][tokenizer][golden]") {
  std::size_t compared = 0;
  for (const auto& folder : case_folders()) {
    const auto golden = load_case(folder);
    const auto* output = text_output(golden.expected);
    if (output == nullptr) continue;
    // llama.cpp adds a template of its own here, which is not ours to copy.
    if (golden.name == "Tiny-Mistral-Tekken-v11") continue;
    // The family adds a template of its own; and a list whose order is that of a hash set.
    if (golden.name == "Qwen3-Reranker-0.1M" || golden.name == "Tiny-Tok-Template-list") continue;
    check_tokenizer(golden, *output);
    ++compared;
  }
  CHECK(compared > 200);
}

TEST_CASE("read_tokenizer refuses what the reference refuses for its tokenizer",
          "[quantize][tokenizer][golden]") {
  for (const auto* name :
       {"Tiny-Tok-BPE-too-small", "Tiny-Tok-negative-id", "Tiny-Tok-no-tokenizer",
        "Tiny-Tok-no-tokenizer_config", "Tiny-Tok-no-tokenizer_config-unknown-type"}) {
    const auto golden = load_case(std::string(MODELD_TEST_DATA) + "/golden/" + name);
    const auto config = test::golden_config(raw_config(golden.files));
    TokenizerRequest request;
    request.architecture = "llama";
    request.pre = text_of(golden.expected, "pre");
    TokenizerRule rule;
    rule.kind = TokenizerKind::llama;
    const auto result = read_tokenizer(golden.files, config, rule, request);
    INFO(name);
    CHECK_FALSE(result);
    if (!result) CHECK_FALSE(result.error().hint.empty());
  }
}
