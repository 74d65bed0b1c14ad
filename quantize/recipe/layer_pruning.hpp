// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace modeld::quantize {

/// Leaves layers out and closes the gaps in the numbers of the others, as --prune-layers does.
/// Names must come in the quantizer's order, since the numbers are given out as layers appear.
class LayerPruning {
public:
  explicit LayerPruning(std::vector<int> layers); ///< any order, repeats allowed

  bool active() const { return !pruned_.empty(); }
  /// The name of a tensor in the output; nothing where its layer is left out.
  std::optional<std::string> rename(const std::string& name);
  /// Layers kept: what block_count becomes.
  int layers_left() const { return next_; }

private:
  std::optional<int> number_for(int layer);

  std::vector<int> pruned_; ///< ascending, each once
  std::map<int, std::optional<int>> numbers_;
  int next_ = 0;
};

} // namespace modeld::quantize
