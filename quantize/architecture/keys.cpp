// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::quantize {
namespace {

struct TypeName {
  std::string_view name;
  KeyType type;
};
constexpr std::array k_types{
    TypeName{"u16", KeyType::u16},         TypeName{"u32", KeyType::u32},
    TypeName{"u64", KeyType::u64},         TypeName{"i32", KeyType::i32},
    TypeName{"f32", KeyType::f32},         TypeName{"bool", KeyType::boolean},
    TypeName{"str", KeyType::text},        TypeName{"array", KeyType::array},
    TypeName{"u32[]", KeyType::u32_array}, TypeName{"u32|array", KeyType::number_or_array},
};

/// Keys that stand for themselves; all others belong to the architecture.
constexpr std::array<std::string_view, 7> k_global{
    "general.", "tokenizer.", "clip.", "adapter.", "split.", "xielu.", "diffusion."};

tl::unexpected<Error> bad(std::string_view line, std::string_view why) {
  return fail(Errc::malformed, fmt::format("reading line \"{}\": {}", line, why));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

/// Position of a text outside quotes, or npos.
std::size_t find_unquoted(std::string_view line, std::string_view what) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\'') quoted = !quoted;
    if (!quoted && line.substr(i, what.size()) == what) return i;
  }
  return std::string_view::npos;
}

std::string full_key(std::string_view name, std::string_view arch) {
  const bool global = std::any_of(k_global.begin(), k_global.end(),
                                  [name](std::string_view p) { return name.starts_with(p); });
  if (global) return std::string(name);
  return fmt::format("{}.{}", arch, name);
}

Result<void> read_refusal(std::string_view line, std::string_view rest, KeyRule& rule) {
  rest = trim(rest);
  if (rest.size() < 2 || rest.front() != '\'' || rest.back() != '\'') {
    return bad(line, "expected refuse 'reason' when condition");
  }
  rule.name = rest.substr(1, rest.size() - 2);
  if (!rule.when) return bad(line, "a refusal needs a condition");
  return {};
}

Result<void> read_key(std::string_view line, std::string_view rest, std::string_view arch,
                      KeyRule& rule) {
  const std::size_t colon = rest.find(':');
  const std::size_t equals = rest.find('=');
  if (colon == std::string_view::npos || equals == std::string_view::npos || colon > equals) {
    return bad(line, "expected name: type = expression");
  }
  std::string_view name = trim(rest.substr(0, colon));
  rule.optional = name.ends_with('?');
  if (rule.optional) name.remove_suffix(1);
  if (name.empty() || name.find(' ') != std::string_view::npos) return bad(line, "no name");
  rule.name = full_key(name, arch);
  const std::string_view type = trim(rest.substr(colon + 1, equals - colon - 1));
  const auto found = std::find_if(k_types.begin(), k_types.end(),
                                  [type](const TypeName& t) { return t.name == type; });
  if (found == k_types.end()) return bad(line, fmt::format("there is no type '{}'", type));
  rule.type = found->type;
  MODELD_ASSIGN(rule.value, Expr::parse(trim(rest.substr(equals + 1))));
  return {};
}

} // namespace

Result<void> read_key_line(std::string_view line, std::string_view arch,
                           const std::map<std::string, std::vector<KeyRule>, std::less<>>& groups,
                           std::vector<KeyRule>& out) {
  std::string_view rest = trim(line);
  KeyRule rule;
  if (const std::size_t at = find_unquoted(rest, " when "); at != std::string_view::npos) {
    MODELD_ASSIGN(rule.when, Expr::parse(trim(rest.substr(at + 6))));
    rest = trim(rest.substr(0, at));
  }
  if (rest.starts_with('@')) {
    const auto group = groups.find(rest.substr(1));
    if (group == groups.end()) return bad(line, "there is no such list of keys");
    if (rule.when) return bad(line, "a list of keys takes no condition");
    for (KeyRule shared : group->second) {
      if (shared.kind == KeyRule::Kind::key) shared.name = full_key(shared.name, arch);
      out.push_back(std::move(shared));
    }
    return {};
  }
  if (rest.starts_with("refuse ") || rest.starts_with("stop ")) {
    const bool stop = rest.starts_with("stop ");
    rule.kind = stop ? KeyRule::Kind::stop : KeyRule::Kind::refuse;
    MODELD_TRY(read_refusal(line, rest.substr(stop ? 5 : 7), rule));
  } else if (rest.starts_with("let ")) {
    rule.kind = KeyRule::Kind::let;
    MODELD_ASSIGN(Assignment set, read_assignment(rest.substr(4)));
    rule.name = std::move(set.name);
    rule.value = std::move(set.value);
  } else if (rest.starts_with("remove ")) {
    rule.kind = KeyRule::Kind::remove;
    rule.name = full_key(trim(rest.substr(7)), arch);
  } else {
    MODELD_TRY(read_key(line, rest, arch, rule));
  }
  out.push_back(std::move(rule));
  return {};
}

Result<Assignment> read_assignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return bad(text, "expected name = expression");
  const std::string_view name = trim(text.substr(0, equals));
  if (name.empty() || name.find(' ') != std::string_view::npos) return bad(text, "no name");
  MODELD_ASSIGN(Expr value, Expr::parse(trim(text.substr(equals + 1))));
  return Assignment{std::string(name), std::move(value)};
}

Result<OpRule> read_op(std::string_view text) {
  OpRule op;
  text = trim(text);
  const std::size_t open = text.find('(');
  op.name = text.substr(0, open);
  if (open == std::string_view::npos) return op;
  if (text.back() != ')') return bad(text, "expected ')' at the end");
  std::string_view rest = trim(text.substr(open + 1, text.size() - open - 2));
  // Arguments are parted by commas outside brackets and quotes.
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= rest.size(); ++i) {
    const char c = i < rest.size() ? rest[i] : ',';
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c != ',' || depth > 0 || rest.empty()) continue;
    MODELD_ASSIGN(Expr argument, Expr::parse(trim(rest.substr(begin, i - begin))));
    op.arguments.push_back(std::move(argument));
    begin = i + 1;
  }
  return op;
}

} // namespace modeld::quantize
