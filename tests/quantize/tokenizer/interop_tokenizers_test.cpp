// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/encoder.hpp"
#include "quantize/tokenizer/pre_tokenizer_label.hpp"
#include "quantize/tokenizer/tokenizer.hpp"

#include "tests/quantize/tokenizer/golden_kv.hpp"
#include "tests/quantize/tokenizer/golden_rules.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <vector>

// Real tokenizers; get_tokenizers.py fetches them into the build folder.

using namespace modeld;
using namespace modeld::quantize;
using Ids = std::vector<std::uint32_t>;
namespace fs = std::filesystem;

namespace {

const fs::path k_folder = MODELD_TOKENIZERS_DIR;

Ids ids_of(const boost::json::value& value) {
  Ids out;
  for (const auto& each : value.as_array()) {
    out.push_back(each.to_number<std::uint32_t>());
  }
  return out;
}

std::string text_of(const boost::json::object& object, std::string_view name) {
  const auto* found = object.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

struct Golden {
  boost::json::value file =
      test::read_json_file(std::string(MODELD_TEST_DATA) + "/golden/tokenizers.json");
  const boost::json::array& records() const { return file.at("records").as_array(); }
  const boost::json::array& texts() const { return file.at("test_strings").as_array(); }
};

const Golden& golden() {
  static const Golden k_golden;
  return k_golden;
}

/// Runs `check` for each record whose folder is there; warns of the others.
template <class Check>
void each_record(Check check) {
  for (const auto& each : golden().records()) {
    const auto& record = each.as_object();
    const std::string name = text_of(record, "model_dir");
    if (!fs::exists(k_folder / name / ".complete")) {
      WARN("not fetched: " << name);
      continue;
    }
    INFO(name);
    check(record, test::MemoryFiles::from_folder(k_folder / name));
  }
}

} // namespace

TEST_CASE("Encoder::encode equals the tokenizers library for real tokenizers",
          "[quantize][tokenizer][encoder][interop]") {
  each_record([](const boost::json::object& record, const test::MemoryFiles& files) {
    if (!files.contains("tokenizer.json") || !record.contains("strings")) return;
    TokenizerFiles parsed(files);
    const auto* definition = parsed.object("tokenizer.json").value();
    const auto tokenizer = HfTokenizer::load_plain(*definition);
    REQUIRE(tokenizer);
    const auto encoder = Encoder::make(*tokenizer);
    if (!encoder) FAIL(encoder.error().message);
    const auto& strings = record.at("strings").as_array();
    for (std::size_t i = 0; i < strings.size(); ++i) {
      INFO("string " << i);
      const auto& expected = strings[i].as_object();
      const std::string_view text = golden().texts()[i].as_string();
      if (expected.contains("plain")) {
        CHECK(encoder->encode(text, Encoder::Special::leave_out) == ids_of(expected.at("plain")));
      }
      if (expected.contains("special")) {
        CHECK(encoder->encode(text, Encoder::Special::add) == ids_of(expected.at("special")));
      }
    }
  });
}

TEST_CASE("check_hash equals the reference's for real tokenizers",
          "[quantize][tokenizer][label][interop]") {
  each_record([](const boost::json::object& record, const test::MemoryFiles& files) {
    // A SentencePiece model alone has a fixed label; nobody asks for its hash.
    if (!record.contains("chkhsh") || files.contains("tokenizer.model")) return;
    TokenizerFiles parsed(files);
    std::vector<std::string> warnings;
    const auto tokenizer = HfTokenizer::load(parsed, warnings);
    if (!tokenizer) {
      FAIL_CHECK(tokenizer.error().message);
      return;
    }
    const auto encoder = Encoder::make(*tokenizer);
    if (!encoder) FAIL(encoder.error().message);
    const auto ids = encoder->encode(check_text(), Encoder::Special::add);
    REQUIRE(ids);
    CHECK(check_hash(*ids) == text_of(record, "chkhsh"));
  });
}

TEST_CASE("read_tokenizer equals the reference for real tokenizers",
          "[quantize][tokenizer][interop]") {
  each_record([](const boost::json::object& record, const test::MemoryFiles& files) {
    const auto* expected = record.if_contains("vocab_only_gguf");
    const auto* kv = expected == nullptr ? nullptr : expected->as_object().if_contains("kv");
    // llama.cpp adds a chat template of its own to RWKV, which is not ours to copy.
    if (kv == nullptr || text_of(record, "model_dir") == "rwkv-6-Tok-world") return;
    const auto bytes = files.bytes("config.json").value();
    const auto raw =
        boost::json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).as_object();
    const auto config = test::golden_config(raw);
    TokenizerRequest request;
    request.architecture = text_of(kv->as_array().at(0).as_object(), "value");
    const auto result = read_tokenizer(
        files, config, test::golden_rule(text_of(record, "architecture"), config), request);
    if (!result) {
      FAIL_CHECK(result.error().message);
      return;
    }
    CHECK(test::describe(result->kv, {"tokenizer."}) ==
          test::describe_golden(kv->as_array(), {"tokenizer."}));
  });
}

TEST_CASE("Encoder::encode equals the tokenizers library for rebuilt tokenizers",
          "[quantize][tokenizer][encoder][interop]") {
  const auto golden =
      test::read_json_file(std::string(MODELD_TEST_DATA) + "/golden/tokenizers-rebuilt.json");
  const auto& texts = golden.at("test_strings").as_array();
  CHECK(golden.at("check_text").as_string() == check_text());
  std::size_t number = 0;
  for (const auto& each : golden.at("records").as_array()) {
    const auto& record = each.as_object();
    const fs::path folder = k_folder / ("rebuilt-" + std::to_string(number++));
    INFO(text_of(record, "source"));
    if (!fs::exists(folder / ".complete")) {
      WARN("not fetched: " << text_of(record, "source"));
      continue;
    }
    const auto definition = test::read_json_file(folder / "tokenizer.json").as_object();
    const auto tokenizer = HfTokenizer::load_plain(definition);
    if (!tokenizer) FAIL(tokenizer.error().message);
    const auto encoder = Encoder::make(*tokenizer);
    if (!encoder) FAIL(encoder.error().message);
    const auto checked = encoder->encode(check_text(), Encoder::Special::add);
    REQUIRE(checked);
    CHECK(*checked == ids_of(record.at("check_ids")));
    CHECK(check_hash(*checked) == text_of(record, "chkhsh"));
    CHECK(label_of_hash(check_hash(*checked)) == text_of(record, "pre"));
    const auto& plain = record.at("plain").as_array();
    for (std::size_t i = 0; i < plain.size(); ++i) {
      INFO("string " << i);
      CHECK(encoder->encode(std::string_view(texts[i].as_string()), Encoder::Special::leave_out) ==
            ids_of(plain[i]));
    }
  }
  CHECK(number == 9);
}
