// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_tokenizer.hpp"
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

// A SentencePiece vocabulary that survives only as tokenizer.json: BPE with byte fallback. Scores
// are lost, so all are -1000.

namespace modeld::quantize {
namespace {

constexpr float k_score = -1000.0F;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// "<0x0A>", in either case.
bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
         is_hex(token[3]) && is_hex(token[4]);
}

} // namespace

Result<bool> is_llama_hf(TokenizerFiles& files) {
  MODELD_ASSIGN(const auto* tokenizer, files.object("tokenizer.json"));
  if (tokenizer == nullptr) return false;
  const auto object_of = [&](std::string_view name) {
    const auto* found = tokenizer->if_contains(name);
    return found == nullptr ? nullptr : found->if_object();
  };
  const auto* model = object_of("model");
  const auto* decoder = object_of("decoder");
  return model != nullptr && decoder != nullptr && text_member(*model, "type") == "BPE" &&
         is_truthy(model->if_contains("byte_fallback")) &&
         text_member(*decoder, "type") == "Sequence";
}

Result<Vocabulary> llama_hf_vocabulary(const HfTokenizer& tokenizer) {
  const auto size = static_cast<std::uint32_t>(tokenizer.model_ids().size());
  std::vector<std::string_view> tokens(size);
  for (const auto& [id, token] : tokenizer.all_tokens()) {
    if (id < size) tokens[id] = token;
  }
  const auto& special = tokenizer.special_tokens();
  const auto is_special = [&](std::string_view token) {
    return std::find(special.begin(), special.end(), token) != special.end();
  };
  Vocabulary vocabulary;
  for (std::uint32_t id = 0; id < size; ++id) {
    if (tokens[id].empty()) {
      return fail(Errc::malformed,
                  fmt::format("reading 'tokenizer.json': no token has the id {}", id));
    }
    const auto type = is_byte_token(tokens[id]) ? TokenType::byte
                      : is_special(tokens[id])  ? TokenType::control
                                                : TokenType::normal;
    vocabulary.add(std::string(tokens[id]), k_score, type);
  }
  for (const auto& [id, token] : tokenizer.added().by_id()) {
    if (id < size) continue;
    vocabulary.add(token.content, k_score,
                   is_special(token.content) ? TokenType::control : TokenType::user_defined);
  }
  return vocabulary;
}

Result<void> write_llama_hf(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto tokenizer, HfTokenizer::load(context.files, context.result.warnings));
  MODELD_ASSIGN(auto vocabulary, llama_hf_vocabulary(tokenizer));
  const std::size_t size = vocabulary.size();
  context.kv.set("tokenizer.ggml.model", std::string("llama"));
  context.write_pre("default");
  context.result.tokens = size;
  std::move(vocabulary).write(context.kv);
  MODELD_ASSIGN(auto special,
                SpecialTokens::load(context.files, SpecialTokens::Merges::skip, size));
  return context.finish(special);
}

/// Gemma 4: the same vocabulary with its merges, and tool markers that stay visible.
Result<void> write_gemma4(const TokenizerContext& context) {
  constexpr std::array<std::string_view, 7> k_visible{
      "<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
      "<|tool_response>", "<tool_response|>", "<|\"|>"};
  MODELD_ASSIGN(const auto tokenizer, HfTokenizer::load(context.files, context.result.warnings));
  MODELD_ASSIGN(auto vocabulary, llama_hf_vocabulary(tokenizer));
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (std::find(k_visible.begin(), k_visible.end(), vocabulary.tokens[id]) != k_visible.end()) {
      vocabulary.types[id] = static_cast<std::int32_t>(TokenType::user_defined);
    }
  }
  context.kv.set("tokenizer.ggml.model", std::string("gemma4"));
  context.result.tokens = vocabulary.size();
  std::move(vocabulary).write(context.kv);
  MODELD_ASSIGN(auto special, SpecialTokens::load(context.files, SpecialTokens::Merges::load));
  MODELD_TRY(context.finish(special));
  context.kv.set("tokenizer.ggml.add_space_prefix", false);
  context.kv.set("tokenizer.ggml.add_bos_token", true);
  return {};
}

/// XVERSE: no scores, byte tokens by their text.
Result<void> write_xverse(const TokenizerContext& context) {
  MODELD_ASSIGN(const auto tokenizer, HfTokenizer::load(context.files, context.result.warnings));
  MODELD_ASSIGN(auto vocabulary, base_vocabulary(context, tokenizer));
  for (const auto& [id, token] : tokenizer.all_tokens()) {
    const auto at = tokenizer.added().by_id().find(id);
    auto type = TokenType::normal;
    std::string text(token);
    if (token == std::string_view("\0", 1)) {
      type = TokenType::byte;
      text = "<b'\\x00'>";
    } else if (is_byte_token(token)) {
      type = TokenType::byte;
    } else if (at != tokenizer.added().by_id().end()) {
      type = at->second.special ? TokenType::control : TokenType::user_defined;
    }
    vocabulary.tokens[id] = std::move(text);
    vocabulary.types[id] = static_cast<std::int32_t>(type);
  }
  const std::size_t size = vocabulary.size();
  context.kv.set("tokenizer.ggml.model", std::string("llama"));
  context.write_pre("default");
  context.result.tokens = size;
  std::move(vocabulary).write(context.kv);
  MODELD_ASSIGN(auto special,
                SpecialTokens::load(context.files, SpecialTokens::Merges::skip, size));
  return context.finish(special);
}

} // namespace modeld::quantize
