// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer.hpp"

#include "quantize/tokenizer_vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::quantize {
namespace {

using KindName = std::pair<TokenizerKind, std::string_view>;

constexpr std::array<KindName, 27> k_kinds{{
    {TokenizerKind::none, "none"},
    {TokenizerKind::bpe, "bpe"},
    {TokenizerKind::sentencepiece, "sentencepiece"},
    {TokenizerKind::sentencepiece_or_bpe, "sentencepiece_or_bpe"},
    {TokenizerKind::bpe_or_sentencepiece, "bpe_or_sentencepiece"},
    {TokenizerKind::llama, "llama"},
    {TokenizerKind::llama_hf, "llama_hf"},
    {TokenizerKind::llama_hf_or_sentencepiece, "llama_hf_or_sentencepiece"},
    {TokenizerKind::phi3, "phi3"},
    {TokenizerKind::arctic, "arctic"},
    {TokenizerKind::internlm2, "internlm2"},
    {TokenizerKind::internlm3, "internlm3"},
    {TokenizerKind::gemma4, "gemma4"},
    {TokenizerKind::xverse, "xverse"},
    {TokenizerKind::wordpiece, "wordpiece"},
    {TokenizerKind::xlm_roberta, "xlm_roberta"},
    {TokenizerKind::roberta, "roberta"},
    {TokenizerKind::jina_bert, "jina_bert"},
    {TokenizerKind::nomic_bert, "nomic_bert"},
    {TokenizerKind::t5, "t5"},
    {TokenizerKind::tekken, "tekken"},
    {TokenizerKind::rwkv, "rwkv"},
    {TokenizerKind::qwen, "qwen"},
    {TokenizerKind::kimi, "kimi"},
    {TokenizerKind::hunyuan_moe, "hunyuan_moe"},
    {TokenizerKind::hunyuan, "hunyuan"},
    {TokenizerKind::plamo2, "plamo2"},
}};

tl::unexpected<Error> no_file(std::string_view wanted) {
  return fail(Errc::not_found, fmt::format("reading the vocabulary: there is no {}", wanted),
              "the repository must hold its tokenizer; many keep it with the base model only");
}

Result<void> write_llama(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  if (settings != nullptr) {
    const auto* prefix = member(*settings, "add_prefix_space");
    if (prefix != nullptr) {
      context.kv.set("tokenizer.ggml.add_space_prefix", is_truthy(prefix));
    }
  }
  if (context.files.has("tokenizer.model")) {
    MODELD_TRY(write_sentencepiece(context));
  } else {
    return no_file("tokenizer.model, tokenizer.json or tekken.json");
  }
  MODELD_ASSIGN(const auto size, configured_vocab_size(context.config));
  // Code Llama and Granite 3B code are told apart by nothing else.
  if (size == 32016U) {
    MODELD_TRY(write_second_round(
        context, {{"prefix", 32007U}, {"suffix", 32008U}, {"middle", 32009U}, {"eot", 32010U}}));
  }
  if (size == 49152U) context.kv.set("tokenizer.ggml.add_bos_token", false);
  return {};
}

Result<void> write_kind(const TokenizerContext& context) {
  switch (context.rule.kind) {
  case TokenizerKind::none:
    context.kv.set("tokenizer.ggml.model", std::string("none"));
    return {};
  case TokenizerKind::sentencepiece:
    if (!context.files.has("tokenizer.model")) return no_file("tokenizer.model");
    return write_sentencepiece(context);
  case TokenizerKind::sentencepiece_or_bpe:
  case TokenizerKind::llama_hf_or_sentencepiece:
    if (context.files.has("tokenizer.model")) return write_sentencepiece(context);
    break;
  case TokenizerKind::llama:
    return write_llama(context);
  default:
    break;
  }
  return fail(Errc::unsupported,
              fmt::format("reading the vocabulary: tokenizers of the kind '{}' are not read yet",
                          std::find_if(k_kinds.begin(), k_kinds.end(), [&](const KindName& e) {
                            return e.first == context.rule.kind;
                          })->second));
}

} // namespace

std::optional<TokenizerKind> tokenizer_kind_from_name(std::string_view name) {
  const auto* const at = std::find_if(k_kinds.begin(), k_kinds.end(),
                                      [&](const KindName& e) { return e.second == name; });
  return at == k_kinds.end() ? std::nullopt : std::optional(at->first);
}

std::vector<std::string_view> all_tokenizer_kind_names() {
  std::vector<std::string_view> names;
  for (const auto& [kind, name] : k_kinds) {
    names.push_back(name);
  }
  return names;
}

const GgufValue* find_kv(std::span<const GgufKv> kv, std::string_view key) {
  const auto at = std::find_if(kv.begin(), kv.end(), [&](const GgufKv& e) { return e.key == key; });
  return at == kv.end() ? nullptr : &at->value;
}

void TokenizerContext::write_pre(std::string_view label) const {
  kv.set("tokenizer.ggml.pre", std::string(label));
  result.pre = label;
}

Result<void> TokenizerContext::finish(SpecialTokens& special) const {
  for (const auto& [type, id] : rule.by_id) {
    MODELD_TRY(special.set_if_absent(type, id));
  }
  special.write(kv);
  result.warnings.insert(result.warnings.end(), special.warnings().begin(),
                         special.warnings().end());
  return {};
}

Result<void> write_second_round(const TokenizerContext& context,
                                const std::vector<SpecialById>& ids) {
  SpecialTokens::Types types;
  for (const auto& [type, id] : ids) {
    types.push_back(type);
  }
  MODELD_ASSIGN(auto special, SpecialTokens::load(context.files, SpecialTokens::Merges::skip,
                                                  std::nullopt, std::move(types)));
  for (const auto& [type, id] : ids) {
    MODELD_TRY(special.set_if_absent(type, id));
  }
  special.write(context.kv);
  return {};
}

Result<TokenizerResult> read_tokenizer(const FileSet& files, const boost::json::object& config,
                                       const TokenizerRule& rule, const TokenizerRequest& request) {
  TokenizerFiles parsed(files);
  TokenizerResult result;
  KvList kv;
  kv.set_all(rule.before);
  const TokenizerContext context{parsed, config, rule, request, kv, result};
  MODELD_TRY(write_kind(context));
  if (!rule.second_round.empty()) MODELD_TRY(write_second_round(context, rule.second_round));
  kv.set_all(rule.after);
  result.kv = std::move(kv).release();
  return result;
}

} // namespace modeld::quantize
