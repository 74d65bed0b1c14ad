// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/tensor_groups.hpp"

#include "quantize/convert/low_rank.hpp"
#include "quantize/convert/transform_view.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace json = boost::json;

namespace modeld::quantize {

Result<std::vector<WholeTensor>> TensorGroups::add(const RuleMatch& match,
                                                   const NamedSource& source) {
  const std::size_t group = *matcher_.rule(match.rule).group;
  Collected& all = collected_[{group, match.numbers.bid.value_or(0)}];
  all.numbers = match.numbers;
  all.numbers.xid.reset();
  all.parts[{match.rule, match.numbers.xid.value_or(0)}] = source.tensor;
  auto& stored = all.stored[match.rule];
  stored.insert(stored.end(), source.stored.begin(), source.stored.end());
  all.suffixes[match.rule] = match.suffix;
  return finish(group, all);
}

/// Those that hold for the block.
Result<std::vector<std::size_t>> TensorGroups::rules_of(std::size_t group,
                                                        const NameNumbers& numbers) const {
  std::vector<std::size_t> out;
  for (std::size_t r = 0; r < matcher_.family().tensors.size(); ++r) {
    if (matcher_.rule(r).group != group) continue;
    MODELD_ASSIGN(const bool applies, matcher_.holds(matcher_.rule(r).when, numbers));
    if (applies) out.push_back(r);
  }
  return out;
}

Result<std::uint64_t> TensorGroups::count_of(std::size_t group, const NameNumbers& numbers) const {
  const GroupRule& rule = matcher_.family().groups[group];
  if (!rule.count) return 1;
  const ConfigScope scope = matcher_.scope_for(numbers);
  MODELD_ASSIGN(const json::value value, rule.count->evaluate(scope));
  const auto count = as_integer(value);
  if (!count || *count <= 0) {
    return fail(Errc::malformed, fmt::format("stacking experts: '{}' gives {}, expected a number",
                                             rule.count->text(), json::serialize(value)));
  }
  return static_cast<std::uint64_t>(*count);
}

Result<std::vector<WholeTensor>> TensorGroups::finish(std::size_t group, Collected& all) const {
  std::vector<WholeTensor> out;
  MODELD_ASSIGN(const std::uint64_t count, count_of(group, all.numbers));
  MODELD_ASSIGN(const std::vector<std::size_t> rules, rules_of(group, all.numbers));
  if (all.parts.size() < count * rules.size()) return out;
  const GroupRule& shape = matcher_.family().groups[group];
  std::vector<SourcePtr> stacked;
  for (const std::size_t r : rules) {
    std::vector<SourcePtr> parts;
    for (std::uint32_t xid = 0; xid < count; ++xid) {
      const auto at = all.parts.find({r, xid});
      if (at == all.parts.end()) return missing_part(r, all.numbers, xid);
      parts.push_back(at->second);
    }
    SourcePtr whole = parts[0];
    if (shape.count) {
      MODELD_ASSIGN(whole, stack_parts(parts));
    }
    stacked.push_back(std::move(whole));
  }
  if (shape.join || shape.stack) {
    MODELD_ASSIGN(SourcePtr joined,
                  shape.stack ? stack_parts(stacked) : concat_parts(stacked, *shape.join));
    stacked = {std::move(joined)};
    for (std::size_t i = 1; i < rules.size(); ++i) {
      auto& first = all.stored[rules[0]];
      const auto& more = all.stored[rules[i]];
      first.insert(first.end(), more.begin(), more.end());
    }
  }
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    out.push_back({rules[i], std::move(stacked[i]), all.numbers, all.suffixes[rules[i]],
                   all.stored[rules[i]]});
  }
  all.parts.clear();
  return out;
}

tl::unexpected<Error> TensorGroups::missing_part(std::size_t r, NameNumbers numbers,
                                                 std::uint32_t xid) const {
  numbers.xid = xid;
  return fail(Errc::malformed, fmt::format("stacking experts: tensor '{}' is missing",
                                           matcher_.rule(r).from[0].fill(numbers)));
}

Result<void> TensorGroups::check(std::vector<PlanFault>* faults) const {
  for (const auto& [key, all] : collected_) {
    if (all.parts.empty()) continue;
    MODELD_ASSIGN(const std::uint64_t count, count_of(key.first, all.numbers));
    MODELD_ASSIGN(const auto rules, rules_of(key.first, all.numbers));
    for (const std::size_t r : rules) {
      for (std::uint32_t xid = 0; xid < count; ++xid) {
        if (all.parts.contains({r, xid})) continue;
        auto missing = missing_part(r, all.numbers, xid);
        if (faults == nullptr) return missing;
        NameNumbers numbers = all.numbers;
        numbers.xid = xid;
        const auto suffix = all.suffixes.find(r);
        faults->push_back({PlanFault::Kind::missing,
                           matcher_.rule(r).from[0].fill(numbers) +
                               (suffix == all.suffixes.end() ? ".weight" : suffix->second),
                           std::move(missing.value().message)});
        break; // the first of them tells enough
      }
    }
  }
  return {};
}

} // namespace modeld::quantize
