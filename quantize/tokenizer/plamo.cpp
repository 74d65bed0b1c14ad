// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

// PLaMo 2: tokenizer.jsonl, a list [token, score, type, ...] on each line.

namespace modeld::quantize {
namespace {

constexpr std::string_view k_file = "tokenizer.jsonl";
constexpr std::uint32_t k_end_of_turn = 4;

TokenType type_of(std::string_view name, std::string_view token) {
  if (name == "UNKNOWN") return TokenType::unknown;
  if (name == "CONTROL") return TokenType::control;
  if (name == "BYTE") return TokenType::byte;
  const bool own = token.starts_with("<|plamo:") && token.ends_with("|>");
  return own ? TokenType::control : TokenType::normal;
}

Result<void> add_line(std::string_view line, std::size_t number, Vocabulary& vocabulary) {
  boost::json::error_code ec;
  const auto value = boost::json::parse(line, ec);
  const auto* list = ec ? nullptr : value.if_array();
  if (list == nullptr || list->size() < 2 || !(*list)[0].is_string() || !(*list)[1].is_number()) {
    return fail(
        Errc::malformed,
        fmt::format("reading '{}': line {} is not a list of a token and a score", k_file, number));
  }
  const std::string token((*list)[0].get_string());
  const bool typed = list->size() > 2 && (*list)[2].is_string();
  vocabulary.add(token, static_cast<float>((*list)[1].to_number<double>()),
                 type_of(typed ? std::string_view((*list)[2].get_string()) : "NORMAL", token));
  return {};
}

} // namespace

Result<void> write_plamo2(const TokenizerContext& context) {
  if (!context.files.has(k_file)) {
    return fail(Errc::not_found, fmt::format("reading the vocabulary: there is no {}", k_file));
  }
  MODELD_ASSIGN(const auto text, context.files.text(k_file));
  Vocabulary vocabulary;
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto part = std::string_view(text).substr(at, end - at);
    if (part.find_first_not_of(" \t") != std::string_view::npos) {
      MODELD_TRY(add_line(part, line, vocabulary));
    }
    at = end + 1;
  }
  MODELD_ASSIGN(const auto size, configured_vocab_size(context.config));
  const std::size_t known = vocabulary.size();
  for (std::size_t pad = 1; size && known + pad <= *size; ++pad) {
    vocabulary.add(padding_token(pad), -1000.0F, TokenType::unused);
  }
  const std::vector<std::string> tokens = vocabulary.tokens;
  context.result.tokens = vocabulary.size();
  context.kv.set("tokenizer.ggml.model", std::string("plamo2"));
  context.write_pre("default");
  std::move(vocabulary).write(context.kv);
  MODELD_ASSIGN(const auto* settings, context.files.object("tokenizer_config.json"));
  for (const std::string_view type : {"bos", "eos", "pad", "sep", "unk"}) {
    const auto name =
        settings == nullptr ? std::nullopt : text_member(*settings, fmt::format("{}_token", type));
    if (!name) continue;
    const auto at = std::find(tokens.begin(), tokens.end(), *name);
    if (at == tokens.end()) {
      return fail(
          Errc::malformed,
          fmt::format("reading 'tokenizer_config.json': {}_token '{}' is no token", type, *name));
    }
    context.kv.set(special_id_key(type), static_cast<std::uint32_t>(at - tokens.begin()));
  }
  context.kv.set("tokenizer.ggml.eot_token_id", k_end_of_turn);
  context.kv.set("tokenizer.ggml.add_space_prefix", false);
  return {};
}

} // namespace modeld::quantize
