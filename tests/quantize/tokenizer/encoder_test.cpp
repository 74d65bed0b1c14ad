// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/encoder.hpp"

#include "quantize/tokenizer/pre_tokenizer_label.hpp"
#include "tests/quantize/tokenizer/golden_kv.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;
using Ids = std::vector<std::uint32_t>;

namespace {

const std::string k_golden = std::string(MODELD_TEST_DATA) + "/golden/";

const boost::json::object& golden() {
  static const auto k_value = test::read_json_file(k_golden + "tiny-tokenizers.json");
  return k_value.get_object();
}

Ids ids_of(const boost::json::value& value) {
  Ids out;
  for (const auto& each : value.as_array()) {
    out.push_back(each.to_number<std::uint32_t>());
  }
  return out;
}

Ids encoded(const Encoder& encoder, const boost::json::value& text, Encoder::Special special) {
  auto ids = encoder.encode(std::string_view(text.as_string()), special);
  if (!ids) FAIL(ids.error().message);
  return *ids;
}

/// strings[i][name] against the ids of test_strings[i], where it is given.
void check_strings(const Encoder& encoder, const boost::json::object& kind, std::string_view name,
                   Encoder::Special special) {
  const auto& texts = golden().at("test_strings").as_array();
  const auto& strings = kind.at("strings").as_array();
  for (std::size_t i = 0; i < strings.size(); ++i) {
    const auto* expected = strings[i].as_object().if_contains(name);
    if (expected == nullptr) continue;
    INFO(std::string_view(kind.at("kind").as_string()) << " " << name << " string " << i);
    CHECK(encoded(encoder, texts[i], special) == ids_of(*expected));
  }
}

Encoder encoder_of(const HfTokenizer& tokenizer) {
  auto encoder = Encoder::make(tokenizer);
  if (!encoder) FAIL(encoder.error().message);
  return std::move(*encoder);
}

HfTokenizer plain_of(const boost::json::object& definition) {
  auto tokenizer = HfTokenizer::load_plain(definition);
  if (!tokenizer) FAIL(tokenizer.error().message);
  return std::move(*tokenizer);
}

} // namespace

TEST_CASE("Encoder::encode equals the tokenizers library for every tiny tokenizer",
          "[quantize][tokenizer][encoder][golden]") {
  for (const auto& each : golden().at("kinds").as_array()) {
    const auto& kind = each.as_object();
    const std::string folder = k_golden + std::string(kind.at("folder").as_string());
    for (const char* file : {"/tokenizer.json", "/tokenizer.converted.json"}) {
      if (!std::filesystem::exists(folder + file)) continue;
      const auto definition = test::read_json_file(folder + file).as_object();
      const auto tokenizer = plain_of(definition);
      const auto encoder = encoder_of(tokenizer);

      check_strings(encoder, kind, "plain", Encoder::Special::leave_out);
      check_strings(encoder, kind, "special", Encoder::Special::add);
    }
  }
}

TEST_CASE("check_hash equals the reference's for every tiny tokenizer",
          "[quantize][tokenizer][encoder][golden]") {
  CHECK(check_text() == golden().at("check_text").as_string());
  for (const auto& each : golden().at("kinds").as_array()) {
    const auto& kind = each.as_object();
    INFO(std::string_view(kind.at("kind").as_string()));
    CHECK(check_hash(ids_of(kind.at("check_ids"))) == kind.at("chkhsh").as_string());
    const auto files =
        test::MemoryFiles::from_folder(k_golden + std::string(kind.at("folder").as_string()));
    if (!files.contains("tokenizer.json")) continue;
    TokenizerFiles parsed(files);
    std::vector<std::string> warnings;
    const auto tokenizer = HfTokenizer::load(parsed, warnings);
    if (!tokenizer) FAIL(tokenizer.error().message);
    const auto encoder = encoder_of(*tokenizer);
    const auto ids = encoder.encode(check_text(), Encoder::Special::add);
    REQUIRE(ids);
    CHECK(check_hash(*ids) == kind.at("chkhsh").as_string());
  }
}

TEST_CASE("Encoder::encode equals the tokenizers library for every variant of one feature",
          "[quantize][tokenizer][encoder][golden]") {
  const auto& texts = golden().at("test_strings").as_array();
  std::size_t variants = 0;
  for (const auto& each : golden().at("variants").as_array()) {
    const auto& variant = each.as_object();
    auto definition =
        test::read_json_file(k_golden + std::string(variant.at("base").as_string())).as_object();
    for (const auto& [key, value] : variant.at("set").as_object()) {
      definition[key] = value;
    }
    const auto tokenizer = plain_of(definition);
    const auto encoder = encoder_of(tokenizer);
    const auto check = [&](const boost::json::value& strings, std::string_view name,
                           Encoder::Special special) {
      const auto* expected = variant.if_contains(name);
      if (expected == nullptr) return;
      for (std::size_t i = 0; i < expected->as_array().size(); ++i) {
        INFO(std::string_view(variant.at("name").as_string()) << " " << name << " string " << i);
        CHECK(encoded(encoder, strings.as_array()[i], special) == ids_of(expected->as_array()[i]));
      }
    };
    check(texts, "plain", Encoder::Special::leave_out);
    check(texts, "special", Encoder::Special::add);
    if (variant.contains("extra_strings")) {
      check(variant.at("extra_strings"), "extra_plain", Encoder::Special::leave_out);
    }
    ++variants;
  }
  CHECK(variants == 66);
}

TEST_CASE("label_of_hash takes the last row of a hash that stands twice",
          "[quantize][tokenizer][label]") {
  CHECK(label_of_hash("0876d13b50744004aa9aeae05e7b0647eac9d801b5ba4668afc01e709c15e19f") ==
        "jina-v2-en");
  CHECK(label_of_hash("b6dc8df998e1cfbdc4eac8243701a65afe638679230920b50d6f17d81c098166") ==
        "olmo");
  CHECK(label_of_hash("e636dc30a262dcc0d8c323492e32ae2b70728f4df7dfe9737d9f920a282b8aea") ==
        "qwen2");
  CHECK_FALSE(label_of_hash("00"));
}

TEST_CASE("an unknown pre-tokenizer is refused with the nearest one and the difference",
          "[quantize][tokenizer][label][A01]") {
  const auto files = test::MemoryFiles::from_folder(
      k_golden + "Tiny-Tok-unknown-pre/snapshot/Tiny-Tok-unknown-pre", 1U << 22U);
  TokenizerRule rule;
  rule.kind = TokenizerKind::llama;
  const boost::json::object config{{"vocab_size", 520}};
  const auto refused = read_tokenizer(files, config, rule, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(refused.error().message.find("the nearest is 'llama-bpe'") != std::string::npos);
  CHECK(refused.error().hint.find("--pre llama-bpe") != std::string::npos);
  TokenizerRequest request;
  request.pre = "llama-bpe";
  const auto taken = read_tokenizer(files, config, rule, request);
  REQUIRE(taken);
  CHECK(taken->pre == "llama-bpe");
}
