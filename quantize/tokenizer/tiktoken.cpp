// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/byte_ranks.hpp"
#include "quantize/tokenizer/hf_decoder.hpp"
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

// Families whose tokenizer is a tiktoken rank file beside Python code. The code is not run: its
// special tokens are those of the family, listed here.

namespace modeld::quantize {
namespace {

using SpecialIds = std::vector<std::pair<std::string, std::uint64_t>>;

Result<ByteRanks> read_ranks(const TokenizerContext& context, std::string_view path) {
  if (!context.files.has(path)) {
    return fail(Errc::not_found,
                fmt::format("reading the vocabulary: there is no tokenizer.json and no {}", path),
                "the repository must hold its tokenizer");
  }
  MODELD_ASSIGN(const auto text, context.files.raw(path));
  return ByteRanks::parse_tiktoken(text, path);
}

Result<std::uint64_t> needed_size(const TokenizerContext& context, std::uint64_t known) {
  MODELD_ASSIGN(const auto size, configured_vocab_size(context.config));
  if (!size || *size < known) {
    return fail(Errc::conflict,
                fmt::format("reading the vocabulary: {} tokens, and vocab_size is {}", known,
                            size ? std::to_string(*size) : "missing"),
                "correct vocab_size in config.json");
  }
  return *size;
}

void write_tokens(const TokenizerContext& context, const ByteRanks& ranks,
                  const SpecialIds& special, std::uint64_t size, std::string_view pre) {
  Vocabulary vocabulary;
  vocabulary.tokens.resize(size);
  vocabulary.types.assign(size, static_cast<std::int32_t>(TokenType::unused));
  for (std::size_t id = 0; id < size; ++id) {
    vocabulary.tokens[id] = padding_token(id);
  }
  for (std::size_t id = 0; id < ranks.tokens().size(); ++id) {
    vocabulary.tokens[id] = byte_level_text(ranks.tokens()[id]);
    vocabulary.types[id] = static_cast<std::int32_t>(TokenType::normal);
  }
  for (const auto& [token, id] : special) {
    vocabulary.tokens[id] = token;
    vocabulary.types[id] = static_cast<std::int32_t>(TokenType::control);
  }
  context.kv.set("tokenizer.ggml.model", std::string("gpt2"));
  context.write_pre(context.request.pre.empty() ? pre : context.request.pre);
  context.result.tokens = size;
  std::move(vocabulary).write(context.kv);
}

} // namespace

Result<void> write_hunyuan_ranks(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto ranks, read_ranks(context, "hy.tiktoken"));
  std::uint64_t next = ranks.tokens().size();
  MODELD_ASSIGN(const auto size, needed_size(context, next));
  SpecialIds special;
  for (const auto* token : {"<|endoftext|>", "<|startoftext|>", "<|bos|>", "<|eos|>", "<|pad|>"}) {
    if (next < size) special.emplace_back(token, next++);
  }
  for (unsigned extra = 0; next < size; ++extra) {
    special.emplace_back(fmt::format("<|extra_{}|>", extra), next++);
  }
  write_tokens(context, ranks, special, size, "hunyuan");
  context.kv.set_array("tokenizer.ggml.merges", ranks.merges_by_parents());
  MODELD_ASSIGN(auto found, SpecialTokens::load(context.files, SpecialTokens::Merges::skip));
  return context.finish(found);
}

/// 256 reserved ids after the ranks, which added_tokens_decoder names.
Result<void> write_kimi_ranks(const TokenizerContext& context) {
  constexpr std::uint64_t k_reserved = 256;
  MODELD_ASSIGN(const auto ranks, read_ranks(context, "tiktoken.model"));
  const std::uint64_t first = ranks.tokens().size();
  MODELD_ASSIGN(const auto size, needed_size(context, first + k_reserved));
  MODELD_ASSIGN(const auto named, added_tokens_decoder(context.files));
  SpecialIds special;
  for (std::uint64_t id = first; id < first + k_reserved; ++id) {
    const auto at = std::find_if(named.begin(), named.end(),
                                 [&](const DecoderToken& token) { return token.id == id; });
    special.emplace_back(at != named.end() ? at->content : fmt::format("<|reserved_token_{}|>", id),
                         id);
  }
  write_tokens(context, ranks, special, size, "kimi-k2");
  context.kv.set_array("tokenizer.ggml.merges", ranks.merges_by_parents());
  MODELD_ASSIGN(auto found, SpecialTokens::load(context.files, SpecialTokens::Merges::skip));
  MODELD_TRY(context.finish(found));
  if (context.rule.kind != TokenizerKind::kimi_linear) return {};
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  const auto eos = settings == nullptr ? std::nullopt : text_member(*settings, "eos_token");
  const auto at = std::find_if(special.begin(), special.end(),
                               [&](const auto& each) { return eos && each.first == *eos; });
  if (at != special.end()) {
    context.kv.set("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(at->second));
  }
  return {};
}

/// The first Qwen.
Result<void> write_qwen(const TokenizerContext& context) {
  constexpr unsigned k_extras = 205;
  MODELD_ASSIGN(const auto ranks, read_ranks(context, "qwen.tiktoken"));
  const std::uint64_t first = ranks.tokens().size();
  SpecialIds special{
      {"<|endoftext|>", first}, {"<|im_start|>", first + 1}, {"<|im_end|>", first + 2}};
  for (unsigned extra = 0; extra < k_extras; ++extra) {
    special.emplace_back(fmt::format("<|extra_{}|>", extra), first + special.size());
  }
  MODELD_ASSIGN(const auto size, needed_size(context, first + special.size()));
  write_tokens(context, ranks, special, size, "qwen2");
  MODELD_ASSIGN(auto found, SpecialTokens::load(context.files, SpecialTokens::Merges::skip));
  found.merges() = ranks.merges_by_parents();
  const auto end = static_cast<std::int64_t>(first);
  if (!found.any_id()) {
    MODELD_TRY(found.set_if_absent("bos", end));
    MODELD_TRY(found.set_if_absent("eos", end));
  }
  MODELD_TRY(found.set_if_absent("unk", end));
  return context.finish(found);
}

} // namespace modeld::quantize
