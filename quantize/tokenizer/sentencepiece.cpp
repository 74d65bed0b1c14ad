// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/special_tokens.hpp"
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

// Ids run from 0 to vocab_size - 1 of the configuration. The model's pieces come first, then
// added_tokens.json over them, then tokenizer_config.json's added_tokens_decoder over both; what
// nobody names is padding.

namespace modeld::quantize {
namespace {

constexpr float k_padding_score = -10000.0F;
constexpr float k_added_score = -1000.0F;
constexpr std::string_view k_model = "tokenizer.model";

/// Whether the repository needs a token: it ends or begins texts, pads, or stands in the template.
Result<bool> is_needed(const TokenizerContext& context, std::uint64_t id, std::string_view text) {
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  MODELD_ASSIGN(const auto* config, context.files.object("config.json"));
  for (const auto& type : SpecialTokens::default_types()) {
    const auto* named =
        settings == nullptr ? nullptr : settings->if_contains(fmt::format("{}_token", type));
    if (named != nullptr && named->is_string() && named->get_string() == text) return true;
    if (named != nullptr && named->is_object() &&
        text_member(named->get_object(), "content") == text) {
      return true;
    }
    const auto* number =
        config == nullptr ? nullptr : config->if_contains(fmt::format("{}_token_id", type));
    const auto own = whole_number(number);
    if (own && *own >= 0 && static_cast<std::uint64_t>(*own) == id) return true;
  }
  if (settings == nullptr) return false;
  std::vector<std::string> ignored;
  MODELD_ASSIGN(const auto chat, load_chat_template(context.files, *settings, ignored));
  if (chat.text && chat.text->find(text) != std::string::npos) return true;
  return std::any_of(chat.named.begin(), chat.named.end(), [&](const auto& named) {
    return named.second.find(text) != std::string::npos;
  });
}

/// An added token beyond the embedding is left out, unless the repository needs it.
Result<void> check_added(const TokenizerContext& context, std::string_view file, std::uint64_t id,
                         std::uint64_t size, std::string_view text) {
  MODELD_ASSIGN(const bool needed, is_needed(context, id, text));
  const std::string message =
      fmt::format("token '{}' of '{}' has id {}, beyond vocab_size {}", text, file, id, size);
  if (needed && !context.request.force) {
    return fail(Errc::conflict,
                fmt::format("reading the vocabulary: {}, and the model uses it", message),
                "correct vocab_size in config.json, or convert with --force to leave the token out "
                "as the reference does");
  }
  context.warn(fmt::format("{}: left out", message));
  return {};
}

/// The reference cuts the model's own pieces short where the embedding has fewer rows, and the
/// model then cannot say those tokens.
Result<void> check_range(const TokenizerContext& context, std::string_view file, std::uint64_t id,
                         std::uint64_t size) {
  const std::string text =
      fmt::format("token id {} of '{}' is beyond vocab_size {}", id, file, size);
  if (!context.request.force) {
    return fail(Errc::conflict, fmt::format("reading the vocabulary: {}", text),
                "correct vocab_size in config.json, or convert with --force to leave such tokens "
                "out as the reference does");
  }
  context.warn(fmt::format("{}: left out", text));
  return {};
}

Result<std::uint64_t> vocabulary_size(const TokenizerContext& context, std::size_t pieces) {
  const auto& config = context.config;
  const std::string_view per_layer = "vocab_size_per_layer_input";
  const bool use_per_layer =
      context.rule.per_layer_vocab_first && config.if_contains(per_layer) != nullptr;
  MODELD_ASSIGN(const auto size,
                configured_vocab_size(config, use_per_layer ? per_layer : "vocab_size"));
  if (!size || *size == 0) return pieces;
  return padded_vocab_size(context, *size);
}

Result<void> apply_decoder(const TokenizerContext& context, Vocabulary& vocabulary) {
  MODELD_ASSIGN(const auto tokens, added_tokens_decoder(context.files));
  for (const DecoderToken& token : tokens) {
    if (token.id >= vocabulary.size()) {
      MODELD_TRY(check_added(context, "tokenizer_config.json", token.id, vocabulary.size(),
                             token.content));
      continue;
    }
    if (token.special || looks_special(token.content)) {
      vocabulary.put(token.id, token.content, k_added_score, TokenType::control);
    } else {
      vocabulary.put(token.id, without_word_marker(token.content), k_added_score,
                     TokenType::user_defined);
    }
  }
  return {};
}

} // namespace

Result<void> apply_added_tokens(const TokenizerContext& context, Vocabulary& vocabulary) {
  constexpr std::string_view k_file = "added_tokens.json";
  MODELD_ASSIGN(const auto* added, context.files.object(k_file));
  if (added == nullptr) return {};
  for (const auto& [text, value] : *added) {
    const auto id = whole_number(&value);
    if (!id || *id < 0) {
      return fail(Errc::malformed,
                  fmt::format("reading '{}': '{}' has no id", k_file, std::string_view(text)));
    }
    const auto at = static_cast<std::uint64_t>(*id);
    if (at >= vocabulary.size()) {
      MODELD_TRY(check_added(context, k_file, at, vocabulary.size(), std::string_view(text)));
      continue;
    }
    vocabulary.put(at, std::string(text), k_added_score, TokenType::user_defined);
  }
  return {};
}

Result<std::vector<DecoderToken>> added_tokens_decoder(TokenizerFiles& files) {
  constexpr std::string_view k_file = "tokenizer_config.json";
  std::vector<DecoderToken> out;
  MODELD_ASSIGN(const auto* config, files.object(k_file));
  const auto* found = config == nullptr ? nullptr : member(*config, "added_tokens_decoder");
  if (found == nullptr) return out;
  const auto broken = [k_file](std::string_view key) {
    return fail(Errc::malformed,
                fmt::format("reading '{}': added_tokens_decoder's entry '{}' is not an id with a "
                            "content",
                            k_file, key));
  };
  const auto* decoder = found->if_object();
  if (decoder == nullptr) return broken("");
  for (const auto& [key, value] : *decoder) {
    const std::string_view digits = key;
    DecoderToken token;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.id);
    const auto* entry = value.if_object();
    if (error != std::errc{} || end != digits.data() + digits.size() || entry == nullptr) {
      return broken(key);
    }
    const auto content = text_member(*entry, "content");
    if (!content) return broken(key);
    token.content = *content;
    token.special = is_truthy(entry->if_contains("special"));
    out.push_back(std::move(token));
  }
  return out;
}

Result<std::uint64_t> padded_vocab_size(const TokenizerContext& context, std::uint64_t size) {
  std::uint64_t multiple = context.rule.pad_multiple;
  if (context.rule.pad_multiple_from_config) {
    MODELD_ASSIGN(const auto given,
                  configured_vocab_size(context.config, "pad_vocab_size_multiple"));
    multiple = given.value_or(multiple);
  }
  return multiple == 0 ? size : (size + multiple - 1) / multiple * multiple;
}

Result<SentencePieceModel> load_sentencepiece(const TokenizerContext& context,
                                              std::string_view path) {
  MODELD_ASSIGN(const auto bytes, context.files.raw(path));
  return SentencePieceModel::parse(bytes, path);
}

Result<Vocabulary> piece_vocabulary(const TokenizerContext& context,
                                    const SentencePieceModel& model, std::uint64_t size) {
  Vocabulary vocabulary;
  for (std::uint64_t id = 0; id < size; ++id) {
    vocabulary.add(padding_token(id), k_padding_score, TokenType::unused);
  }
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (id >= size) {
      MODELD_TRY(check_range(context, k_model, id, size));
      break;
    }
    const auto& piece = model.pieces[id];
    // User-defined pieces are written as normal ones; only added tokens are user-defined.
    const auto type = piece.type == TokenType::user_defined ? TokenType::normal : piece.type;
    vocabulary.put(id, piece.text, piece.score, type);
  }
  return vocabulary;
}

Result<Vocabulary> sentencepiece_vocabulary(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto model, load_sentencepiece(context, k_model));
  MODELD_ASSIGN(const auto size, vocabulary_size(context, model.pieces.size()));
  MODELD_ASSIGN(auto vocabulary, piece_vocabulary(context, model, size));
  MODELD_TRY(apply_added_tokens(context, vocabulary));
  MODELD_TRY(apply_decoder(context, vocabulary));
  return vocabulary;
}

Result<void> write_sentencepiece(const TokenizerContext& context) {
  MODELD_ASSIGN(auto vocabulary, sentencepiece_vocabulary(context));
  const std::size_t size = vocabulary.size();
  context.kv.set("tokenizer.ggml.model", std::string("llama"));
  context.write_pre("default");
  std::move(vocabulary).write(context.kv);
  context.result.tokens = size;
  MODELD_ASSIGN(auto special,
                SpecialTokens::load(context.files, SpecialTokens::Merges::skip, size));
  return context.finish(special);
}

} // namespace modeld::quantize
