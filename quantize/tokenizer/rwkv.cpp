// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

// rwkv_vocab_v20230424.txt: lines of an id, a Python literal ('text' or b'bytes') and the number of
// its bytes. GGUF gets the bytes as Python would print them, without b and quotes.

namespace modeld::quantize {
namespace {

constexpr std::string_view k_file = "rwkv_vocab_v20230424.txt";
constexpr std::uint64_t k_default_size = 65536;
constexpr std::int64_t k_double_newline = 261;

std::optional<unsigned> number(std::string_view digits, int base) {
  unsigned value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// One escape after the backslash; moves past it. False where it is none.
bool take_escape(std::string_view& rest, bool bytes, std::string& out) {
  constexpr std::string_view k_names = "abfnrtv\\'\"";
  constexpr std::string_view k_values = "\a\b\f\n\r\t\v\\'\"";
  const char kind = rest.front();
  rest.remove_prefix(1);
  if (const auto at = k_names.find(kind); at != std::string_view::npos) {
    out += k_values[at];
    return true;
  }
  const std::size_t n = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (n == 0 || rest.size() < n || (bytes && kind != 'x')) return false;
  const auto value = number(rest.substr(0, n), 16);
  if (!value || *value > 0x10FFFF) return false;
  rest.remove_prefix(n);
  if (bytes) {
    out += static_cast<char>(*value);
  } else {
    append_utf8(out, static_cast<char32_t>(*value));
  }
  return true;
}

/// The bytes of a literal: a text's UTF-8.
std::optional<std::string> literal_bytes(std::string_view literal) {
  const bool bytes = literal.starts_with('b');
  if (bytes) literal.remove_prefix(1);
  if (literal.size() < 2 || literal.front() != literal.back() ||
      (literal.front() != '\'' && literal.front() != '"')) {
    return std::nullopt;
  }
  std::string_view rest = literal.substr(1, literal.size() - 2);
  std::string out;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c != '\\') {
      out += c;
    } else if (rest.empty() || !take_escape(rest, bytes, out)) {
      return std::nullopt;
    }
  }
  return out;
}

/// repr() of bytes without b and quotes.
std::string printed(std::string_view bytes) {
  const bool escape_quote =
      bytes.find('\'') != std::string_view::npos && bytes.find('"') != std::string_view::npos;
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
    case '\\':
      out += "\\\\";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      if (c == '\'' && escape_quote) {
        out += "\\'";
      } else if (byte < 0x20 || byte >= 0x7F) {
        out += fmt::format("\\x{:02x}", byte);
      } else {
        out += c;
      }
    }
  }
  return out;
}

Result<std::string> token_of_line(std::string_view line, std::size_t at) {
  const auto broken = [at] {
    return fail(
        Errc::malformed,
        fmt::format("reading '{}': line {} is not an id, a literal and a length", k_file, at));
  };
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return broken();
  const auto bytes = literal_bytes(line.substr(first + 1, last - first - 1));
  const auto length = number(line.substr(last + 1), 10);
  if (!bytes || !length || bytes->size() != *length) return broken();
  return printed(*bytes);
}

} // namespace

Result<void> write_rwkv(const TokenizerContext& context) {
  if (!context.files.has(k_file)) {
    return fail(Errc::not_found, fmt::format("reading the vocabulary: there is no {}", k_file));
  }
  MODELD_ASSIGN(const auto text, context.files.text(k_file));
  MODELD_ASSIGN(const auto configured, configured_vocab_size(context.config));
  const std::uint64_t size = configured.value_or(k_default_size);
  Vocabulary vocabulary;
  const auto add = [&](std::string token, TokenType type) {
    vocabulary.tokens.push_back(std::move(token));
    vocabulary.types.push_back(static_cast<std::int32_t>(type));
  };
  add("<s>", TokenType::control);
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const auto end = std::min(text.find('\n', at), text.size());
    MODELD_ASSIGN(auto token, token_of_line(std::string_view(text).substr(at, end - at), line));
    add(std::move(token), TokenType::normal);
    at = end + 1;
  }
  if (vocabulary.size() > size) {
    return fail(Errc::conflict,
                fmt::format("reading the vocabulary: {} tokens, and vocab_size is {}",
                            vocabulary.size(), size),
                "correct vocab_size in config.json");
  }
  while (vocabulary.size() < size) {
    add(padding_token(vocabulary.size()), TokenType::unused);
  }
  context.result.tokens = size;
  context.kv.set("tokenizer.ggml.model", std::string("rwkv"));
  std::move(vocabulary).write(context.kv);
  MODELD_ASSIGN(auto special, SpecialTokens::load(context.files, SpecialTokens::Merges::skip));
  if (special.chat_template().empty()) {
    context.warn("the repository has no chat template; the reference would add one of its own");
  }
  // So that chat ends at an empty line; the files' own ids are wrong for this vocabulary.
  MODELD_TRY(special.set_if_absent("eot", k_double_newline));
  special.replace("bos", 0);
  special.replace("eos", 0);
  return context.finish(special);
}

} // namespace modeld::quantize
