// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/tokenizer.hpp"

#include "quantize/tokenizer/sentencepiece_model.hpp"
#include "tests/quantize/tokenizer/golden_kv.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace modeld;
using namespace modeld::quantize;
using test::MemoryFiles;

namespace {

std::string data(const std::string& path) {
  return std::string(MODELD_TEST_DATA) + "/" + path;
}

boost::json::object config_of(const MemoryFiles& files) {
  const auto bytes = files.bytes("config.json").value();
  return boost::json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()})
      .as_object();
}

/// A SentencePiece file of so few pieces that every bit can be flipped.
std::string small_model() {
  const auto piece = [](std::string_view text, char type) {
    std::string body = "\x0A";
    body += static_cast<char>(text.size());
    body += text;
    body += std::string("\x15\0\0\x80\xBF\x18", 6) + type;
    return std::string("\x0A") + static_cast<char>(body.size()) + body;
  };
  return piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) +
         piece("\xE2\x96\x81"
               "a",
               1) +
         std::string("\x12\x05\x18\x02\x98\x02\0", 7) + std::string("\x1A\x04\x18\x00\x20\x01", 6);
}

} // namespace

TEST_CASE("read_tokenizer equals the reference for TinyVerse-4M", "[quantize][tokenizer][golden]") {
  const auto files = MemoryFiles::from_folder(data("data/TinyVerse-4M"), 1U << 20U);
  const auto golden = test::read_json_file(data("data/TinyVerse-4M.expected.json"));
  const auto& kv = golden.at("outputs").at(0).at("kv").as_array();
  TokenizerRule rule;
  rule.kind = TokenizerKind::llama;
  const auto result = read_tokenizer(files, config_of(files), rule, {});
  if (!result) FAIL(result.error().message);
  CHECK(test::describe(result->kv, {"tokenizer."}) == test::describe_golden(kv, {"tokenizer."}));
  CHECK(result->tokens == 2048);
  CHECK(result->pre == "default");
}

TEST_CASE("SentencePieceModel::parse reads pieces, trainer and normalizer",
          "[quantize][tokenizer][sentencepiece]") {
  const auto model = SentencePieceModel::parse(small_model(), "tokenizer.model");
  if (!model) FAIL(model.error().message);
  REQUIRE(model->pieces.size() == 4);
  CHECK(model->pieces[0].type == TokenType::unknown);
  CHECK(model->pieces[3].text == "\u2581"
                                 "a");
  CHECK(model->pieces[3].score == -1.0F);
  CHECK(model->algorithm == SentencePieceModel::Algorithm::bpe);
  CHECK_FALSE(model->add_dummy_prefix);
}

TEST_CASE("SentencePieceModel::parse survives truncation at each byte and every bit flip",
          "[quantize][tokenizer][sentencepiece]") {
  const std::string whole = small_model();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto model = SentencePieceModel::parse(whole.substr(0, n), "tokenizer.model");
    if (model) CHECK(model->pieces.size() <= 4);
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    const auto model = SentencePieceModel::parse(changed, "tokenizer.model");
    if (model)
      CHECK(std::all_of(model->pieces.begin(), model->pieces.end(),
                        [](const auto& piece) { return !piece.text.empty(); }));
  }
}

TEST_CASE("SentencePieceModel::parse refuses what the reference's library refuses",
          "[quantize][tokenizer][sentencepiece]") {
  const auto refuses = [](const std::string& bytes, std::string_view why) {
    const auto model = SentencePieceModel::parse(bytes, "tokenizer.model");
    REQUIRE_FALSE(model);
    CHECK(model.error().code == Errc::malformed);
    CHECK(model.error().message.find(why) != std::string::npos);
    CHECK(model.error().message.find("'tokenizer.model'") != std::string::npos);
  };
  refuses("", "0 unknown pieces");
  refuses("version https://git-lfs.github.com/spec/v1\n", "in the field at byte");
  refuses(small_model() + small_model(), "again");
  refuses(std::string("\x0A\xFF\xFF\xFF\xFF\x0F", 6), "bytes left");
  refuses(std::string("\x0A\x02\x0A\x00", 4), "empty text");
}

TEST_CASE("read_tokenizer refuses a vocabulary cut short unless forced",
          "[quantize][tokenizer][A04]") {
  MemoryFiles files("m", {{"tokenizer.model", small_model()}, {"config.json", "{}"}});
  TokenizerRule rule;
  rule.kind = TokenizerKind::sentencepiece;
  const boost::json::object config{{"vocab_size", 3}};
  const auto refused = read_tokenizer(files, config, rule, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::conflict);
  CHECK(refused.error().message.find("beyond vocab_size 3") != std::string::npos);
  TokenizerRequest forced;
  forced.force = true;
  const auto result = read_tokenizer(files, config, rule, forced);
  REQUIRE(result);
  CHECK(result->tokens == 3);
  CHECK(result->warnings.size() == 1);
}

TEST_CASE("read_tokenizer leaves an added token beyond the rows out, unless the model uses it",
          "[quantize][tokenizer][A04]") {
  MemoryFiles files("m", {{"tokenizer.model", small_model()},
                          {"config.json", "{}"},
                          {"added_tokens.json", R"({"<pad>": 4})"}});
  TokenizerRule rule;
  rule.kind = TokenizerKind::sentencepiece;
  const boost::json::object config{{"vocab_size", 4}};
  const auto dropped = read_tokenizer(files, config, rule, {});
  REQUIRE(dropped);
  CHECK(dropped->tokens == 4);
  REQUIRE(dropped->warnings.size() == 1);
  CHECK(dropped->warnings[0].find("'<pad>'") != std::string::npos);
  SECTION("as pad") {
    files.put("tokenizer_config.json", R"({"pad_token": "<pad>"})");
  }
  SECTION("in the chat template") {
    files.put("tokenizer_config.json", R"({"chat_template": "{{ m }}<pad>"})");
  }
  SECTION("by its id") {
    files.put("config.json", R"({"eos_token_id": 4})");
  }
  const auto refused = read_tokenizer(files, config, rule, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("'<pad>'") != std::string::npos);
}

TEST_CASE("read_tokenizer gives every row without a token a placeholder",
          "[quantize][tokenizer][A03]") {
  MemoryFiles files("m", {{"tokenizer.model", small_model()},
                          {"config.json", "{}"},
                          {"added_tokens.json", R"({"<x>": 6})"}});
  TokenizerRule rule;
  rule.kind = TokenizerKind::sentencepiece;
  const auto result = read_tokenizer(files, boost::json::object{{"vocab_size", 8}}, rule, {});
  REQUIRE(result);
  const auto* tokens = std::get_if<GgufArray>(find_kv(result->kv, "tokenizer.ggml.tokens"));
  REQUIRE(tokens != nullptr);
  const auto& texts = std::get<std::vector<std::string>>(*tokens);
  CHECK(texts == std::vector<std::string>{"<unk>", "<s>", "</s>",
                                          "\u2581"
                                          "a",
                                          "[PAD4]", "[PAD5]", "<x>", "[PAD7]"});
}

TEST_CASE("read_tokenizer takes the chat template of chat_template.jinja and says who won",
          "[quantize][tokenizer][A06]") {
  MemoryFiles files("m", {{"tokenizer.model", small_model()},
                          {"config.json", "{}"},
                          {"tokenizer_config.json", R"({"add_bos_token": true})"},
                          {"chat_template.jinja", "{{ 'é 日本' }}\r\n"}});
  TokenizerRule rule;
  rule.kind = TokenizerKind::sentencepiece;
  const auto result = read_tokenizer(files, {}, rule, {});
  REQUIRE(result);
  CHECK(std::get<std::string>(*find_kv(result->kv, "tokenizer.chat_template")) ==
        "{{ 'é 日本' }}\n");
  files.put("tokenizer_config.json", R"({"chat_template": "other"})");
  const auto both = read_tokenizer(files, {}, rule, {});
  REQUIRE(both);
  CHECK(std::get<std::string>(*find_kv(both->kv, "tokenizer.chat_template")) == "other");
  CHECK(both->warnings.size() == 1);
}

TEST_CASE("read_tokenizer takes lists of end ids and says where they disagree",
          "[quantize][tokenizer][A13]") {
  MemoryFiles files("m", {{"tokenizer.model", small_model()},
                          {"config.json", R"({"eos_token_id": 1})"},
                          {"generation_config.json", R"({"eos_token_id": [1, 2]})"}});
  TokenizerRule rule;
  rule.kind = TokenizerKind::sentencepiece;
  const auto result = read_tokenizer(files, {}, rule, {});
  REQUIRE(result);
  CHECK(std::get<std::uint32_t>(*find_kv(result->kv, "tokenizer.ggml.eos_token_id")) == 1);
  REQUIRE(result->warnings.size() == 1);
  CHECK(result->warnings[0].find("[1,2]") != std::string::npos);
}

TEST_CASE("read_tokenizer names the missing half of an older tokenizer",
          "[quantize][tokenizer][A12]") {
  MemoryFiles files("m", {{"vocab.json", R"({"a": 0})"},
                          {"config.json", R"({"model_type": "gpt2"})"},
                          {"tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})"}});
  TokenizerRule rule;
  rule.kind = TokenizerKind::bpe;
  const auto result = read_tokenizer(files, {}, rule, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::not_found);
  CHECK(result.error().message.find("merges.txt is not") != std::string::npos);
}

TEST_CASE("read_tokenizer says which files are missing", "[quantize][tokenizer]") {
  MemoryFiles files("m", {{"config.json", "{}"}});
  TokenizerRule rule;
  rule.kind = TokenizerKind::llama;
  const auto result = read_tokenizer(files, {}, rule, {});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::not_found);
  CHECK(result.error().message.find("tokenizer.model") != std::string::npos);
}

TEST_CASE("read_tokenizer survives damaged JSON files", "[quantize][tokenizer]") {
  const std::string settings =
      R"({"add_bos_token":true,"bos_token":{"content":"<s>"},"added_tokens_decoder":{"3":{"content":"<x>","special":true}},"chat_template":[{"name":"default","template":"t"}]})";
  const std::string json =
      R"({"added_tokens":[{"id":1,"content":"<s>"}],"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"pair":[]}})";
  TokenizerRule rule;
  rule.kind = TokenizerKind::llama;
  for (const auto* target : {"tokenizer_config.json", "tokenizer.json"}) {
    const bool first = std::string_view(target) == "tokenizer_config.json";
    const std::string& whole = first ? settings : json;
    MemoryFiles files("m", {{"tokenizer.model", small_model()},
                            {"tokenizer_config.json", settings},
                            {"tokenizer.json", json}});
    REQUIRE(read_tokenizer(files, {}, rule, {}));
    for (std::size_t n = 0; n < whole.size(); ++n) {
      files.put(target, whole.substr(0, n));
      CHECK_FALSE(read_tokenizer(files, {}, rule, {}));
    }
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string changed = whole;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      files.put(target, changed);
      (void)read_tokenizer(files, {}, rule, {});
    }
  }
}

TEST_CASE("tokenizer kinds have names that lead back to them", "[quantize][tokenizer]") {
  for (const auto name : all_tokenizer_kind_names()) {
    CHECK(tokenizer_kind_from_name(name));
  }
  CHECK_FALSE(tokenizer_kind_from_name("nope"));
}
