// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/config.hpp"

#include <optional>
#include <string>

namespace modeld::quantize {

/// A name of the checkpoint that a rule takes.
struct RuleMatch {
  std::size_t rule = 0; ///< in the family's tensors
  NameNumbers numbers;
  std::string suffix; ///< "", ".weight" or ".bias"
};

/// A family's tensor rules under one configuration; both must live as long.
class RuleMatcher {
public:
  RuleMatcher(const ModelConfig& config, const FileSet& files);

  const Architecture& family() const { return family_; }
  std::int64_t blocks() const { return blocks_; }
  const TensorRule& rule(std::size_t number) const { return family_.tensors[number]; }

  /// The configuration with the numbers of a name.
  ConfigScope scope_for(const NameNumbers& numbers) const;
  /// True where there is no condition.
  Result<bool> holds(const std::optional<Expr>& when, const NameNumbers& numbers) const;
  /// The first rule that takes the name.
  Result<std::optional<RuleMatch>> find(const std::string& name) const;

private:
  const ModelConfig& config_;
  const FileSet& files_;
  const Architecture& family_;
  std::int64_t blocks_;
};

} // namespace modeld::quantize
