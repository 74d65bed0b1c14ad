// SPDX-License-Identifier: Apache-2.0
#include "validate/chat_template_scan.hpp"

#include "validate/escape.hpp"
#include "validate/jinja_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_usual_bytes = std::uint64_t{256} << 10;
constexpr std::size_t k_max_nesting = 64;
constexpr std::uint64_t k_max_range = 100'000;
constexpr std::size_t k_base64_run = 64;

using Kind = JinjaToken::Kind;

bool is_any(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class TemplateScan {
public:
  TemplateScan(std::string_view text, std::string_view what, Report& report)
      : text_(text), what_(what), report_(report), tokens_(jinja_tokens(text)) {}

  void run() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      check_insides(i);
      check_names(i);
      check_tags(i);
      check_calls(i);
      check_comparisons(i);
    }
    check_text();
  }

private:
  const JinjaToken& at(std::size_t i) const {
    static const JinjaToken k_none{};
    return i < tokens_.size() ? tokens_[i] : k_none;
  }
  const JinjaToken& before(std::size_t i, std::size_t back = 1) const {
    return i >= back ? at(i - back) : at(tokens_.size());
  }
  bool is(std::size_t i, std::string_view symbol) const {
    return at(i).kind == Kind::symbol && at(i).text == symbol;
  }
  void error(const JinjaToken& token, std::string_view says) {
    report_.error("TK-11", std::nullopt,
                  fmt::format("{}: {} ({})", what_, says, quoted(token.text)),
                  "never render this template; it is made to run code");
  }
  void warn(std::string_view says) {
    report_.warn("TK-11", std::nullopt, fmt::format("{}: {}", what_, says));
  }
  /// Each kind of warning once.
  void warn_once(bool& said, std::string_view says) {
    if (!std::exchange(said, true)) warn(says);
  }

  void check_insides(std::size_t i);
  void check_names(std::size_t i);
  void check_tags(std::size_t i);
  void check_calls(std::size_t i);
  void check_comparisons(std::size_t i);
  void check_text();

  std::string_view text_;
  std::string_view what_;
  Report& report_;
  std::vector<JinjaToken> tokens_;
  std::vector<std::string> macros_; ///< open ones
  std::size_t nesting_ = 0;
  std::size_t ranges_ = 0;
  bool said_nesting_ = false;
  bool said_range_ = false;
  bool said_recursion_ = false;
  bool said_comparison_ = false;
};

void TemplateScan::check_insides(std::size_t i) {
  const JinjaToken& token = at(i);
  if (token.kind == Kind::name && token.text.starts_with("__"))
    error(token, "reaches for a name that begins with two underscores");
  if (token.kind == Kind::string) {
    // "__cla" ~ "ss__": the parts of a sum are looked at as one.
    std::string sum(token.text);
    std::size_t next = i + 1;
    while ((is(next, "+") || is(next, "~")) && at(next + 1).kind == Kind::string) {
      sum += at(next + 1).text;
      next += 2;
    }
    const bool inside = before(i).kind == Kind::symbol && is_any(before(i).text, {"+", "~"});
    if (!inside && sum.find("__") != std::string::npos &&
        (sum.starts_with("__") || sum.find("__class__") != std::string::npos ||
         sum.find("__globals__") != std::string::npos || sum.find("__mro__") != std::string::npos ||
         sum.find("__builtins__") != std::string::npos ||
         sum.find("__subclasses__") != std::string::npos ||
         sum.find("__import__") != std::string::npos || sum.find("__init__") != std::string::npos))
      error(token, "holds a name that begins with two underscores");
  }
  const bool filter = before(i).kind == Kind::symbol && before(i).text == "|";
  if (token.kind == Kind::name && token.text == "attr" && filter && is(i + 1, "(")) {
    const bool plain = at(i + 2).kind == Kind::string && is(i + 3, ")");
    if (!plain) error(token, "asks for an attribute by a computed name");
  }
}

void TemplateScan::check_names(std::size_t i) {
  const JinjaToken& token = at(i);
  if (token.kind != Kind::name ||
      !is_any(token.text, {"cycler", "joiner", "lipsum", "self", "config", "request", "os"}))
    return;
  const bool member = before(i).kind == Kind::symbol && before(i).text == ".";
  const bool keyword = is(i + 1, "=");
  if (!member && !keyword) error(token, "uses a name of the renderer's own");
}

void TemplateScan::check_tags(std::size_t i) {
  const JinjaToken& token = at(i);
  if (token.kind != Kind::tag) return;
  if (is_any(token.text, {"import", "from", "include", "extends"}))
    error(token, "loads another template");
  if (token.text == "macro" && at(i + 1).kind == Kind::name) macros_.emplace_back(at(i + 1).text);
  if (token.text == "endmacro" && !macros_.empty()) macros_.pop_back();
  const bool inline_set =
      token.text == "set" &&
      std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(i),
                  tokens_.begin() + static_cast<std::ptrdiff_t>(std::min(i + 6, tokens_.size())),
                  [](const JinjaToken& t) { return t.text == "="; });
  if (is_any(token.text, {"if", "for", "macro", "call", "filter", "block"}) ||
      (token.text == "set" && !inline_set))
    ++nesting_;
  else if (token.text.starts_with("end") && nesting_ > 0)
    --nesting_;
  if (nesting_ > k_max_nesting)
    warn_once(said_nesting_, fmt::format("is nested more than {} levels deep", k_max_nesting));
  if (token.text == "for") ranges_ = std::min<std::size_t>(ranges_, nesting_);
  if (nesting_ == 0) ranges_ = 0;
}

void TemplateScan::check_calls(std::size_t i) {
  const JinjaToken& token = at(i);
  if (token.kind != Kind::name || !is(i + 1, "(")) return;
  const bool declared = before(i).kind == Kind::tag && before(i).text == "macro";
  if (!declared && std::find(macros_.begin(), macros_.end(), token.text) != macros_.end())
    warn_once(said_recursion_, "has a macro that calls itself");
  if (token.text != "range") return;
  for (std::size_t j = i + 2; j < tokens_.size() && !is(j, ")"); ++j) {
    if (at(j).kind != Kind::number) continue;
    std::uint64_t number = 0;
    const std::string_view digits = at(j).text;
    const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (ec == std::errc::result_out_of_range || number > k_max_range)
      warn_once(said_range_, "counts over a range of more than 100000");
  }
  if (++ranges_ > 1 && nesting_ > 1) warn_once(said_range_, "counts over ranges inside of ranges");
}

void TemplateScan::check_comparisons(std::size_t i) {
  // What a user said, compared with a sentence: the template waits for something.
  const JinjaToken& token = at(i);
  if (token.kind != Kind::string) return;
  const bool words = token.text.find(' ') != std::string_view::npos &&
                     token.text.find_first_of("<>[]{}|#\n\\") == std::string_view::npos &&
                     std::count_if(token.text.begin(), token.text.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                     }) >= 4;
  const bool left = is(i + 1, "==") || (at(i + 1).kind == Kind::name && at(i + 1).text == "in");
  const bool right = before(i).kind == Kind::symbol && before(i).text == "==";
  if (!words || (!left && !right)) return;
  for (std::size_t j = i > 6 ? i - 6 : 0; j < i + 7; ++j)
    if (at(j).text == "content")
      warn_once(said_comparison_,
                fmt::format("compares a message's content with {}", quoted(token.text)));
}

void TemplateScan::check_text() {
  if (text_.find("http://") != std::string_view::npos ||
      text_.find("https://") != std::string_view::npos)
    warn("holds a URL");
  std::size_t run = 0;
  for (const char c : text_) {
    const bool base64 = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '+' || c == '/';
    run = base64 ? run + 1 : 0;
    if (run == k_base64_run) {
      warn("holds a long run of what looks like base64");
      break;
    }
  }
  std::string lower(text_);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  for (const std::string_view phrase :
       {"ignore previous", "ignore all previous", "ignore the above", "do not tell the user",
        "don't tell the user", "do not mention this", "never mention this", "without telling",
        "do not reveal", "hidden instruction"}) {
    if (lower.find(phrase) == std::string::npos) continue;
    warn(fmt::format("gives the model an instruction that hides something ('{}')", phrase));
    break;
  }
}

} // namespace

void scan_chat_template(std::string_view text, std::string_view what, const Limits& limits,
                        Report& report) {
  if (text.size() > limits.chat_template_bytes) {
    report.error("GN-08", std::nullopt,
                 fmt::format("{} has {} bytes, the limit is {}", what, text.size(),
                             limits.chat_template_bytes));
    return;
  }
  if (text.size() > k_usual_bytes)
    report.warn("TK-11", std::nullopt,
                fmt::format("{} has {} bytes, more than {}", what, text.size(), k_usual_bytes));
  TemplateScan(text, what, report).run();
}

} // namespace modeld::validate
