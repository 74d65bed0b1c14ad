// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/rule_reader.hpp"

#include "quantize/architecture/check.hpp"
#include "quantize/architecture/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace modeld::quantize {

tl::unexpected<Error> RuleReader::bad(const toml::node& at, std::string_view why) const {
  return fail(Errc::internal,
              fmt::format("reading '{}', line {}: {}", file_, at.source().begin.line, why));
}

tl::unexpected<Error> RuleReader::bad(const toml::node& at, const Error& error) const {
  return bad(at, error.message);
}

Result<void> RuleReader::only(const toml::table& table,
                              std::initializer_list<std::string_view> allowed) const {
  for (const auto& [key, value] : table) {
    if (std::find(allowed.begin(), allowed.end(), key.str()) == allowed.end()) {
      return bad(value, fmt::format("there is no key '{}' here; allowed are {}", key.str(),
                                    fmt::join(allowed, ", ")));
    }
  }
  return {};
}

Result<std::string> RuleReader::text(const toml::node& node) const {
  if (const auto value = node.value<std::string>(); node.is_string() && value) return *value;
  return bad(node, "expected a text");
}

Result<std::string> RuleReader::text_or(const toml::table& table, std::string_view key,
                                        std::string_view fallback) const {
  const toml::node* node = table.get(key);
  return node == nullptr ? Result<std::string>(std::string(fallback)) : text(*node);
}

Result<std::vector<std::string>> RuleReader::texts(const toml::table& table,
                                                   std::string_view key) const {
  std::vector<std::string> out;
  const toml::node* node = table.get(key);
  if (node == nullptr) return out;
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& item : *list) {
      MODELD_ASSIGN(std::string one, text(item));
      out.push_back(std::move(one));
    }
    return out;
  }
  MODELD_ASSIGN(std::string one, text(*node));
  out.push_back(std::move(one));
  return out;
}

Result<std::optional<Expr>> RuleReader::expression(const toml::table& table,
                                                   std::string_view key) const {
  const toml::node* node = table.get(key);
  if (node == nullptr) return std::optional<Expr>();
  if (const auto number = node->value_exact<std::int64_t>()) {
    return std::optional<Expr>(*Expr::parse(std::to_string(*number)));
  }
  MODELD_ASSIGN(const std::string words, text(*node));
  auto parsed = Expr::parse(words);
  if (!parsed) return bad(*node, parsed.error());
  return std::optional<Expr>(*std::move(parsed));
}

Result<NamePattern> RuleReader::pattern(const toml::node& node, const std::string& words) const {
  auto parsed = NamePattern::parse(words);
  if (!parsed) return bad(node, parsed.error());
  return parsed;
}

Result<std::vector<NamePattern>> RuleReader::patterns(const toml::table& table,
                                                      std::string_view key) const {
  std::vector<NamePattern> out;
  MODELD_ASSIGN(const auto all, texts(table, key));
  for (const std::string& one : all) {
    MODELD_ASSIGN(NamePattern parsed, pattern(*table.get(key), one));
    out.push_back(std::move(parsed));
  }
  return out;
}

Result<std::vector<KeyRule>> RuleReader::keys(const toml::table& table, std::string_view key,
                                              std::string_view arch,
                                              const StandardRules& standard) const {
  std::vector<KeyRule> out;
  const toml::node* node = table.get(key);
  if (node == nullptr) return out;
  const toml::array* list = node->as_array();
  if (list == nullptr) return bad(*node, "expected a list");
  for (const toml::node& item : *list) {
    MODELD_ASSIGN(const std::string line, text(item));
    if (auto read = read_key_line(line, arch, standard.key_groups, out); !read) {
      return bad(item, read.error());
    }
  }
  return out;
}

Result<std::vector<OpRule>> RuleReader::ops(const toml::table& table) const {
  std::vector<OpRule> out;
  MODELD_ASSIGN(const auto lines, texts(table, "ops"));
  for (const std::string& line : lines) {
    auto op = read_op(line);
    if (!op) return bad(*table.get("ops"), op.error());
    if (!known_op(op->name)) {
      return bad(*table.get("ops"), fmt::format("there is no operation '{}'", op->name));
    }
    out.push_back(*std::move(op));
  }
  return out;
}

Result<std::vector<Assignment>> RuleReader::defaults(const toml::table& table) const {
  std::vector<Assignment> out;
  for (const auto& [key, value] : table) {
    MODELD_ASSIGN(Expr parsed, default_value(value));
    out.push_back({std::string(key.str()), std::move(parsed)});
  }
  return out;
}

Result<Expr> RuleReader::default_value(const toml::node& value) const {
  std::string words;
  if (const auto s = value.value_exact<std::string>()) {
    words = s->starts_with("= ") ? s->substr(2) : fmt::format("'{}'", *s);
  } else if (const auto b = value.value_exact<bool>()) {
    words = *b ? "true" : "false";
  } else if (const auto i = value.value_exact<std::int64_t>()) {
    words = fmt::format("{}", *i);
  } else if (const auto d = value.value_exact<double>()) {
    words = fmt::format("float({})", *d);
  } else {
    return bad(value, "expected a number, a truth value or a text");
  }
  auto parsed = Expr::parse(words);
  if (!parsed) return bad(value, parsed.error());
  return parsed;
}

Result<toml::table> parse_rules(std::string_view file, std::string_view text) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    return fail(Errc::internal, fmt::format("reading '{}', line {}: {}", file,
                                            error.source().begin.line, error.description()));
  }
}

} // namespace modeld::quantize
