// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/vocabulary.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::quantize {

void Vocabulary::add(std::string token, float score, TokenType type) {
  tokens.push_back(std::move(token));
  scores.push_back(score);
  types.push_back(static_cast<std::int32_t>(type));
}

void Vocabulary::put(std::size_t id, std::string token, float score, TokenType type) {
  tokens.at(id) = std::move(token);
  scores.at(id) = score;
  types.at(id) = static_cast<std::int32_t>(type);
}

void Vocabulary::write(KvList& kv) && {
  kv.set_array("tokenizer.ggml.tokens", std::move(tokens));
  kv.set_array("tokenizer.ggml.scores", std::move(scores));
  kv.set_array("tokenizer.ggml.token_type", std::move(types));
}

bool looks_special(std::string_view token) {
  constexpr std::array<std::string_view, 4> k_known{"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
  if (std::find(k_known.begin(), k_known.end(), token) != k_known.end()) return true;
  const auto wrapped = [token](std::string_view open, std::string_view close) {
    return token.starts_with(open) && token.ends_with(close);
  };
  return wrapped("<|", "|>") || wrapped("<\uFF5C", "\uFF5C>") || wrapped("<unused", ">");
}

std::string without_word_marker(std::string_view token) {
  constexpr std::string_view k_marker = "\u2581";
  std::string out;
  while (!token.empty()) {
    const auto at = std::min(token.find(k_marker), token.size());
    out += token.substr(0, at);
    token.remove_prefix(at);
    if (token.empty()) break;
    out += ' ';
    token.remove_prefix(k_marker.size());
  }
  return out;
}

std::string padding_token(std::size_t id) {
  return fmt::format("[PAD{}]", id);
}

Result<std::optional<std::uint64_t>> configured_vocab_size(const boost::json::object& config,
                                                           std::string_view key) {
  const auto* found = member(config, key);
  if (found == nullptr) return std::nullopt;
  const auto size = whole_number(found);
  if (!size || *size < 0 || static_cast<std::uint64_t>(*size) > k_max_tokens) {
    return fail(Errc::malformed,
                fmt::format("reading the configuration: {} is {}, allowed are 0 to {}", key,
                            boost::json::serialize(*found), k_max_tokens));
  }
  return static_cast<std::uint64_t>(*size);
}

} // namespace modeld::quantize
