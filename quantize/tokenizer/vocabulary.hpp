// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/kv_list.hpp"
#include "quantize/tokenizer/files.hpp"
#include "quantize/tokenizer/sentencepiece_model.hpp"
#include "quantize/tokenizer/special_tokens.hpp"
#include "quantize/tokenizer/tokenizer.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// The token lists, one entry for each id. Scores are empty for the kinds that have none.
struct Vocabulary {
  std::vector<std::string> tokens; ///< bytes; UTF-8 except where a byte vocabulary says otherwise
  std::vector<float> scores;
  std::vector<std::int32_t> types; ///< TokenType

  std::size_t size() const { return tokens.size(); }
  void add(std::string token, float score, TokenType type);
  void put(std::size_t id, std::string token, float score, TokenType type);
  /// Writes tokens, scores (where there are some) and types.
  void write(KvList& kv) &&;
};

/// Everything that one call of read_tokenizer works with.
struct TokenizerContext {
  TokenizerFiles& files;
  const boost::json::object& config;
  const TokenizerRule& rule;
  const TokenizerRequest& request;
  KvList& kv;
  TokenizerResult& result; ///< tokens, pre and warnings

  void warn(std::string text) const { result.warnings.push_back(std::move(text)); }
  /// tokenizer.ggml.pre, in the keys and in the result.
  void write_pre(std::string_view label) const;
  /// The rule's by_id ids, then the keys and warnings of `special`.
  Result<void> finish(SpecialTokens& special) const;
};

/// One entry of tokenizer_config.json's added_tokens_decoder, in the order of the file.
struct DecoderToken {
  std::uint64_t id = 0;
  std::string content;
  bool special = false;
};
Result<std::vector<DecoderToken>> added_tokens_decoder(TokenizerFiles& files);

/// Whether a token is a control token by its looks: <pad>, <|...|>, <unused...> and the like.
bool looks_special(std::string_view token);
/// "▁" becomes a space.
std::string without_word_marker(std::string_view token);
/// "[PAD17]", the text of ids that no file names.
std::string padding_token(std::size_t id);

/// A vocabulary larger than any in use by two orders of magnitude; more is refused.
constexpr std::uint64_t k_max_tokens = 1U << 25U;

/// hparams' "vocab_size": what the embedding has rows for. Nothing where it is absent or null.
/// malformed: not a whole number from 0 to k_max_tokens.
Result<std::optional<std::uint64_t>> configured_vocab_size(const boost::json::object& config,
                                                           std::string_view key = "vocab_size");

/// Rounded up to the rule's multiple, which the configuration may give.
Result<std::uint64_t> padded_vocab_size(const TokenizerContext& context, std::uint64_t size);

// The kinds. Each writes its keys, special tokens included, and sets result.tokens.
Result<void> write_sentencepiece(const TokenizerContext& context);
Result<void> write_bpe(const TokenizerContext& context);
Result<void> write_llama_hf(const TokenizerContext& context);
Result<void> write_phi3(const TokenizerContext& context);
Result<void> write_arctic(const TokenizerContext& context);
Result<void> write_internlm2(const TokenizerContext& context);
Result<void> write_internlm3(const TokenizerContext& context);
Result<void> write_gemma4(const TokenizerContext& context);
Result<void> write_xverse(const TokenizerContext& context);
Result<void> write_wordpiece(const TokenizerContext& context);
Result<void> write_xlm_roberta(const TokenizerContext& context);
Result<void> write_roberta(const TokenizerContext& context);
Result<void> write_jina_bert(const TokenizerContext& context);
Result<void> write_t5(const TokenizerContext& context);
Result<void> write_tekken(const TokenizerContext& context);
Result<void> write_rwkv(const TokenizerContext& context);
Result<void> write_qwen(const TokenizerContext& context);
Result<void> write_kimi_ranks(const TokenizerContext& context);
Result<void> write_hunyuan_ranks(const TokenizerContext& context);
Result<void> write_plamo2(const TokenizerContext& context);

/// tokenizer.ggml.token_type_count: the configuration's type_vocab_size or `otherwise`.
void write_token_type_count(const TokenizerContext& context, std::uint32_t otherwise);
/// tokenizer.ggml.add_space_prefix, where tokenizer_config.json has add_prefix_space.
Result<void> write_prefix_space(const TokenizerContext& context);

/// Whether there is a tokenizer.json that is a SentencePiece vocabulary in another form.
Result<bool> is_llama_hf(TokenizerFiles& files);
class HfTokenizer;
/// Tokens and types by id; "[PADn]" for ids that nobody has. conflict where vocab_size is too
/// small.
Result<Vocabulary> base_vocabulary(const TokenizerContext& context, const HfTokenizer& tokenizer);
/// added_tokens.json over a SentencePiece vocabulary.
Result<void> apply_added_tokens(const TokenizerContext& context, Vocabulary& vocabulary);

/// Special tokens once more, with these types and ids only.
Result<void> write_second_round(const TokenizerContext& context,
                                const std::vector<SpecialById>& ids);

/// Tokens, scores and types out of tokenizer.model and the added-token files over it.
Result<Vocabulary> sentencepiece_vocabulary(const TokenizerContext& context);
/// `size` ids: the model's pieces, then padding. conflict where there are more pieces, unless
/// forced.
Result<Vocabulary> piece_vocabulary(const TokenizerContext& context,
                                    const SentencePieceModel& model, std::uint64_t size);
Result<SentencePieceModel> load_sentencepiece(const TokenizerContext& context,
                                              std::string_view path);

} // namespace modeld::quantize
