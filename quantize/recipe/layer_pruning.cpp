// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/layer_pruning.hpp"

#include <algorithm>
#include <charconv>

namespace modeld::quantize {
namespace {

struct Digits {
  std::size_t at;
  std::size_t size;
  int value;
};

/// The first "blk.<digits>." anywhere in the name.
std::optional<Digits> find_layer(const std::string& name) {
  constexpr std::string_view k_prefix = "blk.";
  for (std::size_t at = name.find(k_prefix); at != std::string::npos;
       at = name.find(k_prefix, at + 1)) {
    const std::size_t first = at + k_prefix.size();
    int value = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + first, end, value);
    if (error == std::errc{} && value >= 0 && stop != end && *stop == '.') {
      return Digits{first, static_cast<std::size_t>(stop - name.data()) - first, value};
    }
  }
  return std::nullopt;
}

} // namespace

LayerPruning::LayerPruning(std::vector<int> layers) : pruned_(std::move(layers)) {
  std::sort(pruned_.begin(), pruned_.end());
  pruned_.erase(std::unique(pruned_.begin(), pruned_.end()), pruned_.end());
}

std::optional<int> LayerPruning::number_for(int layer) {
  const auto known = numbers_.find(layer);
  if (known != numbers_.end()) return known->second;
  std::optional<int> number;
  if (!std::binary_search(pruned_.begin(), pruned_.end(), layer)) {
    number = layer < pruned_.front() ? layer : next_;
    next_ = *number + 1;
  }
  numbers_.emplace(layer, number);
  return number;
}

std::optional<std::string> LayerPruning::rename(const std::string& name) {
  if (!active()) return name;
  const auto digits = find_layer(name);
  if (!digits) return name;
  const auto number = number_for(digits->value);
  if (!number) return std::nullopt;
  std::string renamed = name;
  renamed.replace(digits->at, digits->size, std::to_string(*number));
  return renamed;
}

} // namespace modeld::quantize
