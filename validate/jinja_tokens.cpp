// SPDX-License-Identifier: Apache-2.0
#include "validate/jinja_tokens.hpp"

#include <algorithm>
#include <charconv>

namespace modeld::validate {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<JinjaToken> run() {
    while (at_ < text_.size()) {
      const std::size_t open = text_.find('{', at_);
      if (open == std::string_view::npos || open + 1 >= text_.size()) break;
      at_ = open + 2;
      const char kind = text_[open + 1];
      if (kind == '#')
        skip_comment();
      else if (kind == '%')
        code("%}", true);
      else if (kind == '{')
        code("}}", false);
      else
        --at_;
    }
    return std::move(tokens_);
  }

private:
  void skip_comment() {
    const std::size_t end = text_.find("#}", at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 2;
  }

  void code(std::string_view end, bool tag) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (text_.substr(at_, 2) == end) {
        at_ += 2;
        return;
      }
      if (c == '\'' || c == '"') {
        string(c);
      } else if (is_digit(c)) {
        number();
      } else if (is_word(c)) {
        word(tag);
        tag = false;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || (c == '-' && tag)) {
        ++at_;
      } else {
        const std::size_t length = text_.substr(at_, 2) == "==" ? 2 : 1;
        add(JinjaToken::Kind::symbol, std::string(text_.substr(at_, length)));
        at_ += length;
      }
    }
  }

  void word(bool tag) {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_word(text_[at_]))
      ++at_;
    add(tag ? JinjaToken::Kind::tag : JinjaToken::Kind::name,
        std::string(text_.substr(from, at_ - from)));
  }

  void number() {
    std::string digits;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '_')) {
      if (text_[at_] != '_') digits += text_[at_];
      ++at_;
    }
    add(JinjaToken::Kind::number, std::move(digits));
  }

  /// Python's escapes, so that "\x5f\x5fclass" is seen as what it is.
  void string(char quote) {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] != '\\' || at_ + 1 >= text_.size()) {
        value += text_[at_];
        continue;
      }
      const char escape = text_[++at_];
      const std::size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
      unsigned code = 0;
      if (digits > 0 && hex(at_ + 1, digits, code)) {
        value += code < 0x80 ? static_cast<char>(code) : '?';
        at_ += digits;
      } else if (escape >= '0' && escape <= '7') {
        value += octal();
      } else {
        value += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
      }
    }
    if (at_ < text_.size()) ++at_;
    add(JinjaToken::Kind::string, std::move(value));
  }

  bool hex(std::size_t from, std::size_t digits, unsigned& code) const {
    if (text_.size() - from < digits) return false;
    const char* first = text_.data() + from;
    const auto [end, ec] = std::from_chars(first, first + digits, code, 16);
    return ec == std::errc{} && end == first + digits;
  }

  char octal() {
    unsigned code = 0;
    std::size_t digits = 0;
    while (digits < 3 && at_ + digits < text_.size() && text_[at_ + digits] >= '0' &&
           text_[at_ + digits] <= '7')
      code = code * 8 + static_cast<unsigned>(text_[at_ + digits++] - '0');
    at_ += digits - 1;
    return code < 0x80 ? static_cast<char>(code) : '?';
  }

  void add(JinjaToken::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text)}); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<JinjaToken> tokens_;
};

} // namespace

std::vector<JinjaToken> jinja_tokens(std::string_view text) {
  return Lexer(text).run();
}

} // namespace modeld::validate
