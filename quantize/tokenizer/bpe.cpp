// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_tokenizer.hpp"
#include "quantize/tokenizer/pre_tokenizer_label.hpp"
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::quantize {
namespace {

/// The embedding must have a row for every id.
Result<std::uint64_t> vocabulary_size(const TokenizerContext& context, const HfTokenizer& tokenizer,
                                      std::size_t distinct) {
  MODELD_ASSIGN(const auto configured, configured_vocab_size(context.config));
  std::uint64_t size = configured.value_or(distinct);
  if (configured) {
    MODELD_ASSIGN(size, padded_vocab_size(context, size));
  }
  const std::uint32_t largest = tokenizer.largest_id();
  if (largest >= size) {
    return fail(Errc::conflict,
                fmt::format("reading the vocabulary: the tokenizer's largest id is {} and "
                            "vocab_size is {}",
                            largest, size),
                "correct vocab_size in config.json; or tokenizer_config.json adds tokens that the "
                "model has no rows for");
  }
  return size;
}

void put_added(Vocabulary& vocabulary, std::uint32_t id, const AddedToken& token,
               const HfTokenizer& tokenizer) {
  // Control and user-defined tokens are expected in normalized form.
  std::string text = token.normalized ? token.content : tokenizer.decode_one(token.content);
  if (token.special || looks_special(text)) {
    vocabulary.tokens[id] = std::move(text);
    vocabulary.types[id] = static_cast<std::int32_t>(TokenType::control);
  } else {
    vocabulary.tokens[id] = without_word_marker(text);
    vocabulary.types[id] = static_cast<std::int32_t>(TokenType::user_defined);
  }
}

} // namespace

Result<Vocabulary> base_vocabulary(const TokenizerContext& context, const HfTokenizer& tokenizer) {
  const auto tokens = tokenizer.all_tokens();
  // A token may be both the model's and an added one.
  std::size_t distinct = tokenizer.model_ids().size();
  for (const auto& [id, token] : tokenizer.added().by_id()) {
    if (!tokenizer.model_ids().contains(token.content)) ++distinct;
  }
  MODELD_ASSIGN(const auto size, vocabulary_size(context, tokenizer, distinct));
  Vocabulary vocabulary;
  vocabulary.tokens.resize(size);
  vocabulary.types.assign(size, static_cast<std::int32_t>(TokenType::unused));
  std::vector<bool> named(size, false);
  for (const auto& [id, token] : tokens) {
    vocabulary.tokens[id] = token;
    vocabulary.types[id] = static_cast<std::int32_t>(TokenType::normal);
    named[id] = true;
  }
  for (const auto& [id, token] : tokenizer.added().by_id()) {
    put_added(vocabulary, id, token, tokenizer);
  }
  for (std::size_t id = 0; id < size; ++id) {
    if (!named[id]) vocabulary.tokens[id] = padding_token(id);
  }
  return vocabulary;
}

Result<void> set_by_text(const TokenizerContext& context, const HfTokenizer& tokenizer,
                         SpecialTokens& special) {
  for (const auto& [type, text] : context.rule.by_text) {
    const auto id = tokenizer.added().id_of(text);
    if (!id) {
      return fail(Errc::malformed,
                  fmt::format("reading the vocabulary: '{}', which this family has for '{}', is no "
                              "added token",
                              text, type),
                  "the repository's tokenizer is not the one of this family");
    }
    MODELD_TRY(special.set_if_absent(type, *id));
  }
  return {};
}

Result<void> write_byte_level(const TokenizerContext& context, const HfTokenizer& tokenizer,
                              std::string_view model, std::string_view fixed_pre) {
  MODELD_ASSIGN(auto vocabulary, base_vocabulary(context, tokenizer));
  std::string pre(fixed_pre);
  if (pre.empty()) {
    MODELD_ASSIGN(pre, pre_tokenizer_label(context, tokenizer));
  }
  context.kv.set("tokenizer.ggml.model", std::string(model));
  context.write_pre(pre);
  context.result.tokens = vocabulary.size();
  std::move(vocabulary).write(context.kv);
  MODELD_ASSIGN(auto special, SpecialTokens::load(context.files, SpecialTokens::Merges::load));
  if (special.merges().empty() && model == "gpt2" && !context.request.force) {
    return fail(Errc::malformed,
                "reading the vocabulary: neither tokenizer.json nor merges.txt has merges",
                "download the tokenizer again; without merges no runtime can load it");
  }
  MODELD_TRY(set_by_text(context, tokenizer, special));
  return context.finish(special);
}

Result<void> write_bpe(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto tokenizer, HfTokenizer::load(context.files, context.result.warnings));
  return write_byte_level(context, tokenizer, "gpt2", "");
}

Result<void> write_wordpiece(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto tokenizer, HfTokenizer::load(context.files, context.result.warnings));
  MODELD_ASSIGN(auto vocabulary, base_vocabulary(context, tokenizer));
  MODELD_ASSIGN(const auto pre, pre_tokenizer_label(context, tokenizer));
  write_token_type_count(context, 1);
  // A word begins with a marker, and its rest no longer with "##".
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.types[id] == static_cast<std::int32_t>(TokenType::control)) continue;
    std::string& token = vocabulary.tokens[id];
    if (token.starts_with("##")) {
      token.erase(0, 2);
    } else {
      token = std::string("\u2581") + token;
    }
  }
  context.kv.set("tokenizer.ggml.model", std::string("bert"));
  context.write_pre(pre);
  const std::size_t size = vocabulary.size();
  context.result.tokens = size;
  std::move(vocabulary).write(context.kv);
  MODELD_ASSIGN(auto special,
                SpecialTokens::load(context.files, SpecialTokens::Merges::skip, size));
  return context.finish(special);
}

void write_token_type_count(const TokenizerContext& context, std::uint32_t otherwise) {
  const auto given = whole_number(member(context.config, "type_vocab_size"));
  context.kv.set("tokenizer.ggml.token_type_count",
                 given ? static_cast<std::uint32_t>(*given) : otherwise);
}

/// By what the tokenizer is: Jina's models of this class come with three kinds.
Result<void> write_jina_bert(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  const auto name =
      settings == nullptr ? "" : text_member(*settings, "tokenizer_class").value_or("");
  if (name == "BertTokenizer") return write_wordpiece(context);
  if (name != "RobertaTokenizer") {
    return fail(Errc::unsupported,
                fmt::format("reading the vocabulary: tokenizer_class is '{}', this family has "
                            "BertTokenizer and RobertaTokenizer",
                            name));
  }
  MODELD_ASSIGN(const auto tokenizer, HfTokenizer::load(context.files, context.result.warnings));
  const auto* pre = tokenizer.pre_tokenizer().if_object();
  const bool white_space = pre != nullptr && text_member(*pre, "type") == "Whitespace";
  // Fixed: the hash of the white-space form is that of another model.
  MODELD_TRY(white_space ? write_byte_level(context, tokenizer, "whitespace", "whitespace")
                         : write_byte_level(context, tokenizer, "gpt2", ""));
  context.kv.set("tokenizer.ggml.token_type_count", std::uint32_t{2});
  return {};
}

Result<void> write_roberta(const TokenizerContext& context) {
  if (!context.files.has("tokenizer.json")) return write_wordpiece(context);
  MODELD_TRY(write_bpe(context));
  write_token_type_count(context, 1);
  return {};
}

} // namespace modeld::quantize
