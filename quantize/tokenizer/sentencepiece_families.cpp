// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_tokenizer.hpp"
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

// Families that read tokenizer.model by rules of their own.

namespace modeld::quantize {
namespace {

constexpr float k_added_score = -1000.0F;

Result<std::uint64_t> size_or(const TokenizerContext& context, std::size_t pieces) {
  MODELD_ASSIGN(const auto configured, configured_vocab_size(context.config));
  return configured.value_or(pieces);
}

Result<void> write_llama_keys(const TokenizerContext& context, Vocabulary vocabulary) {
  context.kv.set("tokenizer.ggml.model", std::string("llama"));
  context.write_pre("default");
  context.result.tokens = vocabulary.size();
  std::move(vocabulary).write(context.kv);
  return {};
}

Result<SpecialTokens> special_of(const TokenizerContext& context) {
  return SpecialTokens::load(context.files, SpecialTokens::Merges::skip, context.result.tokens);
}

/// tokenizer.json's added tokens with the ids that the file gives them.
Result<std::vector<DecoderToken>> json_added_tokens(TokenizerFiles& files) {
  std::vector<DecoderToken> out;
  MODELD_ASSIGN(const auto* tokenizer, files.object("tokenizer.json"));
  const auto* list = tokenizer == nullptr ? nullptr : tokenizer->if_contains("added_tokens");
  if (list == nullptr || !list->is_array()) return out;
  for (const auto& each : list->get_array()) {
    const auto* entry = each.if_object();
    const auto id = entry == nullptr ? std::nullopt : whole_number(entry->if_contains("id"));
    const auto content = entry == nullptr ? std::nullopt : text_member(*entry, "content");
    if (!id || *id < 0 || !content) {
      return fail(Errc::malformed,
                  "reading 'tokenizer.json': an added token without id or content");
    }
    out.push_back({static_cast<std::uint64_t>(*id), std::string(*content),
                   is_truthy(entry->if_contains("special"))});
  }
  return out;
}

/// Over what is there; special ones are control tokens, all others user-defined.
Result<void> put_tokens(const std::vector<DecoderToken>& tokens, std::string_view file,
                        Vocabulary& vocabulary) {
  for (const DecoderToken& token : tokens) {
    if (token.id >= vocabulary.size()) {
      return fail(Errc::conflict,
                  fmt::format("reading the vocabulary: token id {} of '{}' is beyond the {} tokens",
                              token.id, file, vocabulary.size()),
                  "correct vocab_size in config.json");
    }
    vocabulary.put(token.id, token.content, k_added_score,
                   token.special ? TokenType::control : TokenType::user_defined);
  }
  return {};
}

Result<void> put_all_added(const TokenizerContext& context, Vocabulary& vocabulary) {
  MODELD_ASSIGN(const auto decoder, added_tokens_decoder(context.files));
  MODELD_TRY(put_tokens(decoder, "tokenizer_config.json", vocabulary));
  MODELD_ASSIGN(const auto json, json_added_tokens(context.files));
  return put_tokens(json, "tokenizer.json", vocabulary);
}

/// The id of <|im_end|>, if an added token has it.
Result<std::optional<std::uint64_t>> chat_end(const TokenizerContext& context) {
  std::optional<std::uint64_t> found;
  MODELD_ASSIGN(auto tokens, added_tokens_decoder(context.files));
  MODELD_ASSIGN(const auto json, json_added_tokens(context.files));
  tokens.insert(tokens.end(), json.begin(), json.end());
  for (const DecoderToken& token : tokens) {
    if (token.content == "<|im_end|>") found = token.id;
  }
  return found;
}

} // namespace

Result<void> write_phi3(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  if (settings != nullptr && text_member(*settings, "tokenizer_class") == "GPT2Tokenizer") {
    return write_bpe(context);
  }
  MODELD_ASSIGN(const auto model, load_sentencepiece(context, "tokenizer.model"));
  MODELD_ASSIGN(const auto size, size_or(context, model.pieces.size()));
  MODELD_ASSIGN(auto vocabulary, piece_vocabulary(context, model, size));
  MODELD_TRY(apply_added_tokens(context, vocabulary));
  MODELD_TRY(put_all_added(context, vocabulary));
  MODELD_TRY(write_llama_keys(context, std::move(vocabulary)));
  MODELD_ASSIGN(auto special, special_of(context));
  return context.finish(special);
}

Result<void> write_arctic(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto model, load_sentencepiece(context, "tokenizer.model"));
  MODELD_ASSIGN(const auto size, size_or(context, model.pieces.size()));
  MODELD_ASSIGN(auto vocabulary, piece_vocabulary(context, model, size));
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  const auto unk = settings == nullptr ? std::nullopt : text_member(*settings, "unk_token");
  MODELD_ASSIGN(const auto tokens, added_tokens_decoder(context.files));
  for (const DecoderToken& token : tokens) {
    // This family keeps ids beyond the embedding in its file on purpose.
    if (token.id >= vocabulary.size()) continue;
    if (token.special) {
      vocabulary.put(token.id, token.content, 0.0F,
                     unk == token.content ? TokenType::unknown : TokenType::control);
    } else {
      vocabulary.put(token.id, token.content, -10000.0F, TokenType::user_defined);
    }
  }
  MODELD_TRY(write_llama_keys(context, std::move(vocabulary)));
  MODELD_ASSIGN(auto special, special_of(context));
  return context.finish(special);
}

Result<void> write_internlm2(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto model, load_sentencepiece(context, "tokenizer.model"));
  MODELD_ASSIGN(const auto size, size_or(context, model.pieces.size()));
  if (size > model.pieces.size()) {
    return fail(Errc::conflict,
                fmt::format("reading the vocabulary: vocab_size is {} and tokenizer.model has {} "
                            "pieces",
                            size, model.pieces.size()),
                "correct vocab_size in config.json");
  }
  MODELD_ASSIGN(auto vocabulary, piece_vocabulary(context, model, size));
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    // A NUL cannot stand in a text of GGUF's readers.
    if (vocabulary.tokens[id] == std::string_view("\0", 1)) vocabulary.tokens[id] = "\U0001F409";
    if (vocabulary.tokens[id].starts_with("[UNUSED")) {
      vocabulary.types[id] = static_cast<std::int32_t>(TokenType::unused);
    }
  }
  MODELD_ASSIGN(const auto* added, context.files.object("added_tokens.json"));
  for (std::size_t i = 0; added != nullptr && i < added->size(); ++i) {
    const auto& entry = *std::next(added->begin(), static_cast<std::ptrdiff_t>(i));
    vocabulary.add(std::string(entry.key()), k_added_score, TokenType::user_defined);
  }
  MODELD_TRY(put_all_added(context, vocabulary));
  MODELD_TRY(write_llama_keys(context, std::move(vocabulary)));
  context.kv.set("tokenizer.ggml.add_space_prefix", model.add_dummy_prefix);
  MODELD_ASSIGN(auto special, special_of(context));
  MODELD_ASSIGN(const auto end, chat_end(context));
  if (end && special.id("eos")) special.replace("eos", *end);
  return context.finish(special);
}

Result<void> write_internlm3(const TokenizerContext& context) {
  MODELD_ASSIGN(auto vocabulary, sentencepiece_vocabulary(context));
  MODELD_TRY(write_llama_keys(context, std::move(vocabulary)));
  MODELD_ASSIGN(auto special, special_of(context));
  MODELD_TRY(write_prefix_space(context));
  MODELD_ASSIGN(const auto tokens, added_tokens_decoder(context.files));
  for (const DecoderToken& token : tokens) {
    if (token.special && token.content == "<|im_end|>" && special.id("eos")) {
      special.replace("eos", token.id);
    }
  }
  return context.finish(special);
}

} // namespace modeld::quantize
