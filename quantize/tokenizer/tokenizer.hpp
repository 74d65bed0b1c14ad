// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// From a repository's tokenizer files to the tokenizer.* keys of GGUF, in the order, with the
// types and the quirks of the reference (llama.cpp v0.4.0). Pure functions of the files: no state,
// any thread.

namespace modeld::quantize {

/// How a family finds its vocabulary: the order in which the reference tries files and readers.
/// A family's data file names one (tokenizer_kind_from_name).
enum class TokenizerKind {
  none,                 ///< no vocabulary ("no_vocab" models)
  bpe,                  ///< byte-level BPE through tokenizer.json or vocab.json + merges.txt
  sentencepiece,        ///< tokenizer.model
  sentencepiece_or_bpe, ///< tokenizer.model where there is one, else bpe
  bpe_or_sentencepiece, ///< the other way round: tokenizer.json first
  llama,    ///< tekken, then tokenizer.model, then SentencePiece-like JSON, then bpe (LlamaModel)
  llama_hf, ///< SentencePiece-like tokenizer.json
  llama_hf_or_sentencepiece, ///< tokenizer.model where there is one, else llama_hf (Jamba)
  phi3,                      ///< tokenizer.model with tokenizer.json's added tokens over it
  arctic,                    ///< tokenizer.model with added_tokens_decoder over it
  internlm2,
  internlm3,
  gemma3, ///< sentencepiece_or_bpe; no space before the text where it is SentencePiece
  gemma4,
  xverse,
  wordpiece,   ///< BERT: vocabulary in "phantom space" form
  xlm_roberta, ///< unigram from sentencepiece.bpe.model or tokenizer.json
  roberta,     ///< bpe where there is a tokenizer.json, else wordpiece
  jina_bert,   ///< by tokenizer_class: wordpiece, bpe or whitespace
  nomic_bert,  ///< by the model type in tokenizer.json: xlm_roberta or wordpiece
  t5,          ///< unigram from tokenizer.model or spiece.model
  tekken,      ///< mistral-common's tokenizer files
  rwkv,        ///< rwkv_vocab_v20230424.txt
  qwen,        ///< tiktoken rank file beside python code (Qwen 1)
  kimi,        ///< bpe, else tiktoken.model
  kimi_linear, ///< the same, with the tokenizer's own end of text
  hunyuan_moe, ///< tiktoken rank file (hy.tiktoken)
  hunyuan,     ///< bpe where there is a tokenizer.json, else as hunyuan_moe
  plamo2,      ///< tokenizer.jsonl
};

/// By the name of the enumerator ("sentencepiece_or_bpe").
std::optional<TokenizerKind> tokenizer_kind_from_name(std::string_view name);
std::vector<std::string_view> all_tokenizer_kind_names();

/// A special token set by hand: its type ("bos", "eot", ...) and what it is.
using SpecialById = std::pair<std::string, std::uint32_t>;
using SpecialByText = std::pair<std::string, std::string>;

/// What a family's data file says about its tokenizer.
struct TokenizerRule {
  TokenizerKind kind = TokenizerKind::bpe;
  /// Written before the vocabulary (ModernBERT's flags).
  std::vector<GgufKv> before;
  /// Looked up among the added tokens and set where the repository sets none, in this order (GLM).
  /// A text that is not an added token is an error.
  std::vector<SpecialByText> by_text;
  /// Set where the repository sets none, in this order, after by_text.
  std::vector<SpecialById> by_id;
  /// A second round of special tokens with these types only (CodeGemma's, Refact's).
  std::vector<SpecialById> second_round;
  /// Written after the vocabulary: over a key in place where it stands, else appended.
  std::vector<GgufKv> after;
  /// The vocabulary is padded to a multiple of this: hparams "pad_vocab_size_multiple" goes first
  /// where the flag is set. 0: as it is.
  std::uint32_t pad_multiple = 0;
  bool pad_multiple_from_config = false;
  /// tokenizer.ggml.add_space_prefix after the vocabulary, where tokenizer_config.json has
  /// add_prefix_space (ERNIE).
  bool prefix_space_from_config = false;
  /// Prefer hparams "vocab_size_per_layer_input" over "vocab_size" (SentencePiece).
  /// False for Gemma 3n.
  bool per_layer_vocab_first = true;
};

/// One conversion's view.
struct TokenizerRequest {
  std::string architecture; ///< GGUF architecture, for keys with its name in them
  std::string pre;          ///< --pre: taken as it is, nothing is computed
  /// Write what the reference writes also where it is known to be wrong.
  bool force = false;
  /// The repository is in mistral-common's own format (params.json, consolidated weights).
  bool mistral_format = false;
  /// Add the chat template that goes with the version of a mistral-common vocabulary, where such a
  /// repository has none of its own.
  bool community_template = true;
};

struct TokenizerResult {
  std::vector<GgufKv> kv; ///< in order; a key stands once
  std::uint64_t tokens = 0;
  std::string pre;                   ///< tokenizer.ggml.pre, empty where none is written
  std::vector<std::string> warnings; ///< what a person should know; lower case sentences
};

/// `config` is the configuration as the converter sees it: text_config moved to the root and the
/// class defaults filled in. Files are read from `files` by their plain names.
///
/// not_found: no tokenizer file of a kind that the family reads; malformed: a file breaks its
/// format; unsupported: unknown pre-tokenizer, or a file that only foreign code can read;
/// conflict: vocabulary and vocab_size contradict each other.
Result<TokenizerResult> read_tokenizer(const FileSet& files, const boost::json::object& config,
                                       const TokenizerRule& rule, const TokenizerRequest& request);

/// Value of a key, or null.
const GgufValue* find_kv(std::span<const GgufKv> kv, std::string_view key);

} // namespace modeld::quantize
