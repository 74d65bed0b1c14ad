// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_old_files.hpp"

#include "quantize/encoder/utf8_text.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::quantize {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

object byte_level(bool prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

object split(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", object{{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

/// Lines of two parts; a heading and empty lines are passed over.
Result<array> read_merges(const TokenizerFiles& files) {
  MODELD_ASSIGN(const auto text, files.text("merges.txt"));
  array merges;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto parts = split_at_spaces(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (parts.empty() || (line == 0 && parts.front().starts_with("#"))) continue;
    if (parts.size() != 2) {
      return fail(Errc::malformed, fmt::format("reading 'merges.txt': line {} has {} parts, not 2",
                                               line + 1, parts.size()));
    }
    merges.push_back(array{parts[0], parts[1]});
  }
  return merges;
}

/// [CLS] A [SEP] and the like, by the ids of the vocabulary.
value bert_template(const object& vocab, std::string_view cls, std::string_view sep) {
  object special;
  for (const auto token : {cls, sep}) {
    const auto* id = vocab.if_contains(token);
    if (id == nullptr) return nullptr;
    special[token] = object{{"id", token}, {"ids", array{*id}}, {"tokens", array{token}}};
  }
  const auto entry = [](std::string_view token) {
    return object{{"SpecialToken", object{{"id", token}, {"type_id", 0}}}};
  };
  return object{
      {"type", "TemplateProcessing"},
      {"single",
       array{entry(cls), object{{"Sequence", object{{"id", "A"}, {"type_id", 0}}}}, entry(sep)}},
      {"special_tokens", special}};
}

} // namespace

Result<object> byte_level_definition(TokenizerFiles& files, std::string_view class_name,
                                     const object* settings) {
  constexpr std::string_view k_qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  MODELD_ASSIGN(const auto* vocab, files.object("vocab.json"));
  MODELD_ASSIGN(auto merges, read_merges(files));
  const auto* given = settings == nullptr ? nullptr : settings->if_contains("add_prefix_space");
  const bool prefix = is_truthy(given);
  object out;
  out["added_tokens"] = array();
  out["model"] = object{{"type", "BPE"}, {"vocab", *vocab}, {"merges", std::move(merges)}};
  out["decoder"] = byte_level(prefix, true);
  if (class_name == "Qwen2TokenizerFast") {
    out["normalizer"] = object{{"type", "NFC"}};
    out["pre_tokenizer"] = object{
        {"type", "Sequence"}, {"pretokenizers", array{split(k_qwen2), byte_level(prefix, false)}}};
    out["post_processor"] = byte_level(false, true);
    return out;
  }
  out["pre_tokenizer"] = byte_level(prefix, true);
  out["post_processor"] = byte_level(false, true);
  if (class_name == "RobertaTokenizerFast" || class_name == "BartTokenizerFast") {
    const auto id = [&](std::string_view token) {
      const auto* found = vocab->if_contains(token);
      return found == nullptr ? value(0) : *found;
    };
    out["post_processor"] = object{{"type", "RobertaProcessing"},
                                   {"sep", array{"</s>", id("</s>")}},
                                   {"cls", array{"<s>", id("<s>")}},
                                   {"trim_offsets", true},
                                   {"add_prefix_space", prefix}};
  }
  return out;
}

Result<object> wordpiece_definition(TokenizerFiles& files, const object* settings) {
  MODELD_ASSIGN(const auto text, files.text("vocab.txt"));
  object vocab;
  std::int64_t id = 0;
  for (std::size_t at = 0; at < text.size(); ++id) {
    const auto end = std::min(text.find('\n', at), text.size());
    vocab[std::string_view(text).substr(at, end - at)] = id;
    at = end + 1;
  }
  const auto given = [&](std::string_view name, value otherwise) {
    const auto* found = settings == nullptr ? nullptr : settings->if_contains(name);
    return found == nullptr ? std::move(otherwise) : *found;
  };
  const auto token = [&](std::string_view name, std::string_view otherwise) {
    const auto* found = settings == nullptr ? nullptr : settings->if_contains(name);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string(otherwise);
  };
  object out;
  out["added_tokens"] = array();
  out["normalizer"] = object{{"type", "BertNormalizer"},
                             {"clean_text", true},
                             {"handle_chinese_chars", given("tokenize_chinese_chars", true)},
                             {"strip_accents", given("strip_accents", nullptr)},
                             {"lowercase", given("do_lower_case", true)}};
  out["pre_tokenizer"] = object{{"type", "BertPreTokenizer"}};
  out["post_processor"] =
      bert_template(vocab, token("cls_token", "[CLS]"), token("sep_token", "[SEP]"));
  out["decoder"] = object{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  out["model"] = object{{"type", "WordPiece"},
                        {"unk_token", token("unk_token", "[UNK]")},
                        {"continuing_subword_prefix", "##"},
                        {"max_input_chars_per_word", 100},
                        {"vocab", std::move(vocab)}};
  return out;
}

} // namespace modeld::quantize
