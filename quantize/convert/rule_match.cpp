// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/rule_match.hpp"

#include <boost/json.hpp>

#include <string_view>

namespace json = boost::json;

namespace modeld::quantize {

RuleMatcher::RuleMatcher(const ModelConfig& config, const FileSet& files)
    : config_(config), files_(files), family_(*config.family),
      blocks_(as_integer(config.values.at("block_count")).value_or(0)) {}

ConfigScope RuleMatcher::scope_for(const NameNumbers& numbers) const {
  ConfigScope scope(config_, &files_);
  if (numbers.bid) scope.set("bid", json::value(std::int64_t{*numbers.bid}));
  if (numbers.xid) scope.set("xid", json::value(std::int64_t{*numbers.xid}));
  return scope;
}

Result<bool> RuleMatcher::holds(const std::optional<Expr>& when, const NameNumbers& numbers) const {
  if (!when) return true;
  const ConfigScope scope = scope_for(numbers);
  MODELD_ASSIGN(const json::value value, when->evaluate(scope));
  return truthy(value);
}

Result<std::optional<RuleMatch>> RuleMatcher::find(const std::string& name) const {
  for (const std::string_view suffix : {"", ".weight", ".bias"}) {
    if (!name.ends_with(suffix)) continue;
    const std::string stem = name.substr(0, name.size() - suffix.size());
    for (std::size_t r = 0; r < family_.tensors.size(); ++r) {
      const TensorRule& rule = family_.tensors[r];
      for (const NamePattern& from : rule.from) {
        const auto numbers = from.match(stem);
        if (!numbers) continue;
        // The reference's name tables end with the last block.
        if (numbers->bid && std::int64_t{*numbers->bid} >= blocks_) continue;
        MODELD_ASSIGN(const bool applies, holds(rule.when, *numbers));
        if (applies) return std::optional(RuleMatch{r, *numbers, std::string(suffix)});
      }
    }
  }
  return std::optional<RuleMatch>();
}

} // namespace modeld::quantize
