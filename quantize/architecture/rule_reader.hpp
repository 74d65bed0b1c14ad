// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"

#include <toml++/toml.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// Members of one rule file's tables. Errors (internal: the files are ours) say which file and line
/// they are about.
class RuleReader {
public:
  explicit RuleReader(std::string_view file) : file_(file) {}
  tl::unexpected<Error> bad(const toml::node& at, std::string_view why) const;
  tl::unexpected<Error> bad(const toml::node& at, const Error& error) const;
  /// Nothing else may stand in a table.
  Result<void> only(const toml::table& table,
                    std::initializer_list<std::string_view> allowed) const;
  Result<std::string> text(const toml::node& node) const;
  Result<std::string> text_or(const toml::table& table, std::string_view key,
                              std::string_view fallback) const;
  /// A list of texts; one text stands for a list of one; absent for an empty one.
  Result<std::vector<std::string>> texts(const toml::table& table, std::string_view key) const;
  Result<std::optional<Expr>> expression(const toml::table& table, std::string_view key) const;
  Result<NamePattern> pattern(const toml::node& node, const std::string& words) const;
  Result<std::vector<NamePattern>> patterns(const toml::table& table, std::string_view key) const;
  Result<std::vector<KeyRule>> keys(const toml::table& table, std::string_view key,
                                    std::string_view arch, const StandardRules& standard) const;
  Result<std::vector<OpRule>> ops(const toml::table& table) const;
  /// Values and "= expression" texts.
  Result<std::vector<Assignment>> defaults(const toml::table& table) const;

private:
  Result<Expr> default_value(const toml::node& value) const;

  std::string file_;
};

/// The text of a file; internal with the line where it is no TOML.
Result<toml::table> parse_rules(std::string_view file, std::string_view text);

} // namespace modeld::quantize
