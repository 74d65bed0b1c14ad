// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/byte_ranks.hpp"
#include "quantize/tokenizer/hf_tokenizer.hpp"
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

// Unigram vocabularies: T5's own, and that of XLM-RoBERTa, which puts four tokens of its own in
// front of the model's and loses the last.

namespace modeld::quantize {
namespace {

struct Normalizer {
  bool add_prefix = false;
  bool remove_whitespaces = false;
  std::string charsmap;
};

Normalizer normalizer_of(const SentencePieceModel& model) {
  return {model.add_dummy_prefix, model.remove_extra_whitespaces, model.precompiled_charsmap};
}

void write_charsmap(const TokenizerContext& context, const std::string& charsmap) {
  context.kv.set_array("tokenizer.ggml.precompiled_charsmap",
                       std::vector<std::uint8_t>(charsmap.begin(), charsmap.end()));
}

Result<void> write_head(const TokenizerContext& context, Vocabulary vocabulary) {
  context.kv.set("tokenizer.ggml.model", std::string("t5"));
  context.write_pre("default");
  context.result.tokens = vocabulary.size();
  std::move(vocabulary).write(context.kv);
  return {};
}

Result<void> write_tail(const TokenizerContext& context) {
  MODELD_ASSIGN(auto special, SpecialTokens::load(context.files, SpecialTokens::Merges::skip,
                                                  context.result.tokens));
  return context.finish(special);
}

/// tokenizer.json's normalizer: the character map of the original model.
Result<std::string> charsmap_of(const HfTokenizer& tokenizer) {
  const auto* normalizer = tokenizer.normalizer().if_object();
  const auto encoded =
      normalizer == nullptr ? std::nullopt : text_member(*normalizer, "precompiled_charsmap");
  const auto bytes = encoded ? decode_base64(*encoded) : std::nullopt;
  if (!bytes) {
    return fail(Errc::unsupported,
                "reading 'tokenizer.json': the normalizer has no precompiled_charsmap at its top",
                "use a repository that has sentencepiece.bpe.model");
  }
  return *bytes;
}

Result<Vocabulary> vocabulary_of_json(const TokenizerContext& context,
                                      const HfTokenizer& tokenizer) {
  const auto* vocab = tokenizer.model().if_contains("vocab");
  if (vocab == nullptr || !vocab->is_array()) {
    return fail(Errc::malformed, "reading 'tokenizer.json': the model is no unigram model");
  }
  const auto& list = vocab->get_array();
  MODELD_ASSIGN(const auto configured, configured_vocab_size(context.config));
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  const auto unk = settings == nullptr ? std::nullopt : text_member(*settings, "unk_token");
  const auto added_unk = unk ? tokenizer.added().id_of(*unk) : std::nullopt;
  const auto model_unk = whole_number(tokenizer.model().if_contains("unk_id")).value_or(3);
  const auto unk_id = added_unk ? static_cast<std::int64_t>(*added_unk) : model_unk;
  const auto& special = tokenizer.special_tokens();
  Vocabulary vocabulary;
  for (std::size_t id = 0; id < list.size(); ++id) {
    const auto& pair = list[id].get_array();
    const auto added = tokenizer.added().by_id().find(static_cast<std::uint32_t>(id));
    const bool is_added = added != tokenizer.added().by_id().end();
    const std::string text(is_added ? added->second.content : std::string(pair[0].get_string()));
    auto type = TokenType::normal;
    if (static_cast<std::int64_t>(id) == unk_id) {
      type = TokenType::unknown;
    } else if (std::find(special.begin(), special.end(), text) != special.end()) {
      type = TokenType::control;
    } else if (is_added) {
      type = TokenType::user_defined;
    }
    vocabulary.add(text, static_cast<float>(pair[1].to_number<double>()), type);
  }
  while (configured && vocabulary.size() < *configured) {
    vocabulary.add(padding_token(vocabulary.size()), -10000.0F, TokenType::unused);
  }
  return vocabulary;
}

Result<Vocabulary> vocabulary_of_pieces(const TokenizerContext& context,
                                        const SentencePieceModel& model) {
  constexpr std::array<std::string_view, 4> k_own{"<s>", "<pad>", "</s>", "<unk>"};
  MODELD_ASSIGN(const auto configured, configured_vocab_size(context.config));
  const auto size = std::max<std::uint64_t>(configured.value_or(0), model.pieces.size());
  MODELD_ASSIGN(const auto pieces, piece_vocabulary(context, model, size));
  Vocabulary vocabulary;
  for (const auto token : k_own) {
    vocabulary.add(std::string(token), 0.0F,
                   token == "<unk>" ? TokenType::unknown : TokenType::control);
  }
  for (std::size_t id = 3; id + 1 < pieces.size(); ++id) {
    vocabulary.add(pieces.tokens[id], pieces.scores[id], static_cast<TokenType>(pieces.types[id]));
  }
  // Nomic's mixture of experts keeps the mask where XLM-RoBERTa has it.
  constexpr std::size_t k_mask = 250001;
  if (context.request.architecture == "nomic-bert-moe" && vocabulary.size() > k_mask) {
    vocabulary.put(k_mask, "<mask>", 0.0F, TokenType::control);
  }
  return vocabulary;
}

Result<void> write_xlm(const TokenizerContext& context, Vocabulary vocabulary,
                       const Normalizer& normalizer) {
  MODELD_TRY(write_head(context, std::move(vocabulary)));
  context.kv.set("tokenizer.ggml.add_space_prefix", normalizer.add_prefix);
  write_token_type_count(context, 1);
  context.kv.set("tokenizer.ggml.remove_extra_whitespaces", normalizer.remove_whitespaces);
  write_charsmap(context, normalizer.charsmap);
  return write_tail(context);
}

tl::unexpected<Error> not_unigram(std::string_view path) {
  return fail(Errc::unsupported,
              fmt::format("reading '{}': it is no unigram model, which this family needs", path));
}

} // namespace

Result<void> write_xlm_roberta(const TokenizerContext& context) {
  constexpr std::string_view k_model = "sentencepiece.bpe.model";
  if (context.files.has(k_model)) {
    MODELD_ASSIGN(const auto model, load_sentencepiece(context, k_model));
    if (model.algorithm != SentencePieceModel::Algorithm::unigram) return not_unigram(k_model);
    MODELD_ASSIGN(auto vocabulary, vocabulary_of_pieces(context, model));
    return write_xlm(context, std::move(vocabulary), normalizer_of(model));
  }
  MODELD_ASSIGN(const auto tokenizer, HfTokenizer::load(context.files, context.result.warnings));
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  const auto flag = [settings](std::string_view name) {
    return settings != nullptr && is_truthy(settings->if_contains(name));
  };
  MODELD_ASSIGN(auto charsmap, charsmap_of(tokenizer));
  MODELD_ASSIGN(auto vocabulary, vocabulary_of_json(context, tokenizer));
  return write_xlm(
      context, std::move(vocabulary),
      {flag("add_prefix_space"), flag("clean_up_tokenization_spaces"), std::move(charsmap)});
}

Result<void> write_t5(const TokenizerContext& context) {
  const std::string path =
      context.files.has("tokenizer.model") ? "tokenizer.model" : "spiece.model";
  if (!context.files.has(path)) {
    return fail(Errc::not_found,
                "reading the vocabulary: there is no tokenizer.model and no spiece.model");
  }
  MODELD_ASSIGN(const auto model, load_sentencepiece(context, path));
  if (model.algorithm == SentencePieceModel::Algorithm::bpe && path == "tokenizer.model") {
    return write_sentencepiece(context);
  }
  if (model.algorithm != SentencePieceModel::Algorithm::unigram) return not_unigram(path);
  MODELD_ASSIGN(const auto configured, configured_vocab_size(context.config));
  MODELD_ASSIGN(auto vocabulary,
                piece_vocabulary(context, model, configured.value_or(model.pieces.size())));
  MODELD_TRY(apply_added_tokens(context, vocabulary));
  const Normalizer normalizer = normalizer_of(model);
  MODELD_TRY(write_head(context, std::move(vocabulary)));
  context.kv.set("tokenizer.ggml.add_space_prefix", normalizer.add_prefix);
  context.kv.set("tokenizer.ggml.remove_extra_whitespaces", normalizer.remove_whitespaces);
  write_charsmap(context, normalizer.charsmap);
  return write_tail(context);
}

} // namespace modeld::quantize
