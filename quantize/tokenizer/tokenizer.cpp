// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/tokenizer.hpp"

#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::quantize {
namespace {

using KindName = std::pair<TokenizerKind, std::string_view>;

constexpr std::array<KindName, 29> k_kinds{{
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
    {TokenizerKind::gemma3, "gemma3"},
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
    {TokenizerKind::kimi_linear, "kimi_linear"},
    {TokenizerKind::hunyuan_moe, "hunyuan_moe"},
    {TokenizerKind::hunyuan, "hunyuan"},
    {TokenizerKind::plamo2, "plamo2"},
}};

tl::unexpected<Error> no_file(std::string_view wanted) {
  return fail(Errc::not_found, fmt::format("reading the vocabulary: there is no {}", wanted),
              "the repository must hold its tokenizer; many keep it with the base model only");
}

Result<void> write_llama_vocabulary(const TokenizerContext& context) {
  if (context.files.has("tokenizer.model")) return write_sentencepiece(context);
  if (!context.files.has("tokenizer.json") && !context.files.has("vocab.json")) {
    return no_file("tokenizer.model, tokenizer.json or tekken.json");
  }
  MODELD_ASSIGN(const bool llama_hf, is_llama_hf(context.files));
  return llama_hf ? write_llama_hf(context) : write_bpe(context);
}

Result<void> write_llama(const TokenizerContext& context) {
  if (context.request.mistral_format ||
      (context.files.has("tekken.json") && !context.files.has("tokenizer.json"))) {
    return write_tekken(context);
  }
  MODELD_TRY(write_prefix_space(context));
  MODELD_TRY(write_llama_vocabulary(context));
  MODELD_ASSIGN(const auto size, configured_vocab_size(context.config));
  // Code Llama and Granite 3B code are told apart by nothing else.
  if (size.value_or(32000) == 32016U) {
    MODELD_TRY(write_second_round(
        context, {{"prefix", 32007U}, {"suffix", 32008U}, {"middle", 32009U}, {"eot", 32010U}}));
  }
  if (size == 49152U) context.kv.set("tokenizer.ggml.add_bos_token", false);
  return {};
}

/// The first way that has its file.
Result<void> write_by_files(const TokenizerContext& context) {
  const bool model = context.files.has("tokenizer.model");
  const bool json = context.files.has("tokenizer.json");
  switch (context.rule.kind) {
  case TokenizerKind::sentencepiece_or_bpe:
    return model ? write_sentencepiece(context) : write_bpe(context);
  case TokenizerKind::bpe_or_sentencepiece:
    return model && !json ? write_sentencepiece(context) : write_bpe(context);
  case TokenizerKind::gemma3:
    MODELD_TRY(model ? write_sentencepiece(context) : write_bpe(context));
    if (model) context.kv.set("tokenizer.ggml.add_space_prefix", false);
    return {};
  case TokenizerKind::llama_hf_or_sentencepiece:
    MODELD_TRY(model ? write_sentencepiece(context) : write_llama_hf(context));
    if (!model) context.kv.set("tokenizer.ggml.add_space_prefix", false);
    return {};
  case TokenizerKind::kimi:
  case TokenizerKind::kimi_linear:
    return json ? write_bpe(context) : write_kimi_ranks(context);
  case TokenizerKind::hunyuan:
    return json ? write_bpe(context) : write_hunyuan_ranks(context);
  default:
    break;
  }
  if (!model) return no_file("tokenizer.model");
  switch (context.rule.kind) {
  case TokenizerKind::phi3:
    return write_phi3(context);
  case TokenizerKind::arctic:
    return write_arctic(context);
  case TokenizerKind::internlm2:
    return write_internlm2(context);
  case TokenizerKind::internlm3:
    return write_internlm3(context);
  default:
    return write_sentencepiece(context);
  }
}

Result<void> write_nomic_bert(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto* tokenizer, context.files.object("tokenizer.json"));
  const auto* model = tokenizer == nullptr ? nullptr : tokenizer->if_contains("model");
  const auto type = model != nullptr && model->is_object()
                        ? text_member(model->get_object(), "type").value_or("")
                        : std::string_view();
  if (type == "Unigram") return write_xlm_roberta(context);
  if (type == "WordPiece") return write_wordpiece(context);
  return fail(Errc::unsupported,
              fmt::format("reading 'tokenizer.json': the model's type is '{}', this family has "
                          "Unigram and WordPiece",
                          type));
}

Result<void> write_kind(const TokenizerContext& context) {
  switch (context.rule.kind) {
  case TokenizerKind::none:
    context.kv.set("tokenizer.ggml.model", std::string("none"));
    return {};
  case TokenizerKind::llama:
    return write_llama(context);
  case TokenizerKind::bpe:
    return write_bpe(context);
  case TokenizerKind::llama_hf:
    return write_llama_hf(context);
  case TokenizerKind::gemma4:
    return write_gemma4(context);
  case TokenizerKind::xverse:
    return write_xverse(context);
  case TokenizerKind::wordpiece:
    return write_wordpiece(context);
  case TokenizerKind::xlm_roberta:
    return write_xlm_roberta(context);
  case TokenizerKind::roberta:
    return write_roberta(context);
  case TokenizerKind::jina_bert:
    return write_jina_bert(context);
  case TokenizerKind::nomic_bert:
    return write_nomic_bert(context);
  case TokenizerKind::t5:
    return write_t5(context);
  case TokenizerKind::tekken:
    return write_tekken(context);
  case TokenizerKind::rwkv:
    return write_rwkv(context);
  case TokenizerKind::qwen:
    return write_qwen(context);
  case TokenizerKind::hunyuan_moe:
    return write_hunyuan_ranks(context);
  case TokenizerKind::plamo2:
    return write_plamo2(context);
  default:
    return write_by_files(context);
  }
}

/// A file has one eos; what else the repository says is told, since a runtime that stops on that
/// one only may run on.
Result<void> warn_about_ends(const TokenizerContext& context) {
  const auto* written = context.kv.find("tokenizer.ggml.eos_token_id");
  const auto* eos = written == nullptr ? nullptr : std::get_if<std::uint32_t>(written);
  for (const std::string_view file : {"config.json", "generation_config.json"}) {
    const auto settings = context.files.object(file);
    if (!settings || *settings == nullptr) continue;
    const auto* found = member(**settings, "eos_token_id");
    if (found == nullptr) continue;
    const auto one = whole_number(found);
    if (one && eos != nullptr && *one == static_cast<std::int64_t>(*eos)) continue;
    context.warn(fmt::format("eos_token_id of {} is {}, the file's eos is {}", file,
                             boost::json::serialize(*found),
                             eos == nullptr ? "unset" : std::to_string(*eos)));
  }
  return {};
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

Result<void> write_prefix_space(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  const auto* prefix = settings == nullptr ? nullptr : member(*settings, "add_prefix_space");
  if (prefix != nullptr) context.kv.set("tokenizer.ggml.add_space_prefix", is_truthy(prefix));
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
  if (rule.prefix_space_from_config) MODELD_TRY(write_prefix_space(context));
  kv.set_all(rule.after);
  MODELD_TRY(warn_about_ends(context));
  result.kv = std::move(kv).release();
  return result;
}

} // namespace modeld::quantize
