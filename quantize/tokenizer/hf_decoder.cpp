// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_decoder.hpp"

#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/files.hpp"
#include "quantize/tokenizer/sentencepiece_model.hpp"

#include <boost/json.hpp>

#include <array>
#include <numeric>

namespace modeld::quantize {
namespace {

using Tokens = std::vector<std::string>;

constexpr std::string_view k_replacement = "\uFFFD";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string out;
  std::string_view rest = text;
  for (auto at = rest.find(from); at != std::string_view::npos; at = rest.find(from)) {
    out += rest.substr(0, at);
    out += to;
    rest.remove_prefix(at + from.size());
  }
  out += rest;
  text = std::move(out);
}

/// How many bytes one U+FFFD stands for: the longest beginning of a valid sequence, at least 1.
std::size_t broken_length(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  const std::size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() < 2) return 1;
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < low || at(1) > high) return 1;
  std::size_t n = 2;
  while (n < whole && n < bytes.size() && (at(n) & 0xC0U) == 0x80U) {
    ++n;
  }
  return n;
}

std::string lossy_utf8(std::string_view bytes) {
  std::string out;
  while (const auto bad = find_invalid_utf8(bytes)) {
    out += bytes.substr(0, *bad);
    out += k_replacement;
    bytes.remove_prefix(*bad + broken_length(bytes.substr(*bad)));
  }
  out += bytes;
  return out;
}

std::string byte_level(const Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    std::string own;
    bool all = true;
    for (std::size_t at = 0; at < token.size() && all;) {
      const int byte = byte_of_character(next_code_point(token, at));
      all = byte >= 0;
      own += static_cast<char>(byte);
    }
    bytes += all ? own : token;
  }
  return lossy_utf8(bytes);
}

void metaspace(const boost::json::object& decoder, Tokens& tokens) {
  const std::string marker(text_member(decoder, "replacement").value_or("\u2581"));
  const bool never = text_member(decoder, "prepend_scheme") == "never";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    const bool first = i == 0 && !never;
    std::string out;
    for (std::size_t at = 0; at < token.size();) {
      const std::size_t before = at;
      next_code_point(token, at);
      const std::string_view c = std::string_view(token).substr(before, at - before);
      if (c != marker) {
        out += c;
      } else if (!first) {
        out += ' ';
      }
    }
    token = std::move(out);
  }
}

void byte_fallback(Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (find_invalid_utf8(bytes)) {
      out.insert(out.end(), bytes.size(), std::string(k_replacement));
    } else {
      out.push_back(bytes);
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const int byte = byte_of_piece(token);
    if (byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

void strip(const boost::json::object& decoder, Tokens& tokens) {
  const std::string content(text_member(decoder, "content").value_or(" "));
  const auto start = whole_number(decoder.if_contains("start")).value_or(0);
  const auto stop = whole_number(decoder.if_contains("stop")).value_or(0);
  for (std::string& token : tokens) {
    for (std::int64_t i = 0; i < start && token.starts_with(content); ++i) {
      token.erase(0, content.size());
    }
    for (std::int64_t i = 0; i < stop && token.ends_with(content) && !token.empty(); ++i) {
      token.resize(token.size() - content.size());
    }
  }
}

void wordpiece(const boost::json::object& decoder, Tokens& tokens) {
  const std::string prefix(text_member(decoder, "prefix").value_or("##"));
  const bool clean = is_truthy(decoder.if_contains("cleanup"));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i != 0) {
      if (tokens[i].starts_with(prefix)) {
        tokens[i].erase(0, prefix.size());
      } else {
        tokens[i] = std::string(1, ' ') + tokens[i];
      }
    }
    if (clean) tokens[i] = without_token_spaces(std::move(tokens[i]));
  }
}

void apply(const boost::json::value& value, Tokens& tokens) {
  const auto* decoder = value.if_object();
  if (decoder == nullptr) return;
  const auto type = text_member(*decoder, "type").value_or("");
  if (type == "Sequence") {
    const auto* parts = decoder->if_contains("decoders");
    if (parts == nullptr || !parts->is_array()) return;
    for (const auto& part : parts->get_array()) {
      apply(part, tokens);
    }
  } else if (type == "ByteLevel") {
    tokens = {byte_level(tokens)};
  } else if (type == "Metaspace") {
    metaspace(*decoder, tokens);
  } else if (type == "ByteFallback") {
    byte_fallback(tokens);
  } else if (type == "Fuse") {
    tokens = {std::accumulate(tokens.begin(), tokens.end(), std::string())};
  } else if (type == "Strip") {
    strip(*decoder, tokens);
  } else if (type == "WordPiece") {
    wordpiece(*decoder, tokens);
  } else if (type == "Replace") {
    const auto* pattern = decoder->if_contains("pattern");
    const auto* inner = pattern == nullptr ? nullptr : pattern->if_object();
    const auto from = inner == nullptr ? std::nullopt : text_member(*inner, "String");
    if (!from) return;
    for (std::string& token : tokens) {
      replace_all(token, *from, text_member(*decoder, "content").value_or(""));
    }
  }
}

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<char32_t, 256> make_characters() {
  std::array<char32_t, 256> out{};
  char32_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    out.at(byte) = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
  }
  return out;
}

constexpr std::array<char32_t, 256> k_characters = make_characters();

} // namespace

char32_t character_of_byte(unsigned char byte) {
  return k_characters.at(byte);
}

int byte_of_character(char32_t character) {
  static const auto k_bytes = [] {
    std::array<int, 324> out{};
    out.fill(-1);
    for (std::size_t byte = 0; byte < k_characters.size(); ++byte) {
      out.at(k_characters.at(byte)) = static_cast<int>(byte);
    }
    return out;
  }();
  return character < k_bytes.size() ? k_bytes.at(character) : -1;
}

std::string byte_level_text(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 2);
  for (const char c : bytes) {
    append_utf8(out, character_of_byte(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string decode_tokens(const boost::json::value& decoder, Tokens tokens) {
  const bool any = decoder.is_object();
  apply(decoder, tokens);
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!any && i != 0) out += ' ';
    out += tokens[i];
  }
  return out;
}

std::string without_token_spaces(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> k_rules{{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const auto& [from, to] : k_rules) {
    replace_all(text, from, to);
  }
  return text;
}

} // namespace modeld::quantize
