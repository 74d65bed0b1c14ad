// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/rule_match.hpp"
#include "quantize/convert/tensor_plan.hpp"
#include "quantize/convert/weights.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// What became of the parts of a group: the input of one rule.
struct WholeTensor {
  std::size_t rule;
  SourcePtr tensor;
  NameNumbers numbers;
  std::string suffix;
  std::vector<std::string> stored; ///< the checkpoint's own names of all parts
};

/// Experts and other parts that become one tensor, until all of them are there. The matcher must
/// live as long.
class TensorGroups {
public:
  explicit TensorGroups(const RuleMatcher& matcher) : matcher_(matcher) {}

  /// What is whole with this part, in the order in which it goes out; mostly nothing. malformed: a
  /// part is missing among them.
  Result<std::vector<WholeTensor>> add(const RuleMatch& match, const NamedSource& source);
  /// malformed where parts are left that never became whole, with the first that is missing. With
  /// `faults` the first of each rule and block is listed instead.
  Result<void> check(std::vector<PlanFault>* faults) const;

private:
  /// The parts of a group for one block.
  struct Collected {
    std::map<std::pair<std::size_t, std::uint32_t>, SourcePtr> parts; ///< by rule and expert
    std::map<std::size_t, std::string> suffixes;                      ///< by rule
    std::map<std::size_t, std::vector<std::string>> stored;           ///< likewise
    NameNumbers numbers;
  };

  Result<std::vector<std::size_t>> rules_of(std::size_t group, const NameNumbers& numbers) const;
  Result<std::uint64_t> count_of(std::size_t group, const NameNumbers& numbers) const;
  Result<std::vector<WholeTensor>> finish(std::size_t group, Collected& all) const;
  tl::unexpected<Error> missing_part(std::size_t r, NameNumbers numbers, std::uint32_t xid) const;

  const RuleMatcher& matcher_;
  std::map<std::pair<std::size_t, std::uint32_t>, Collected> collected_; ///< by group and block
};

} // namespace modeld::quantize
