// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/model_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

namespace modeld::quantize {
namespace {

constexpr int k_max_layers = 512; // of the reference's loader

template <class T>
inline constexpr bool is_whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

std::optional<std::int64_t> whole(const GgufValue& value) {
  return std::visit(
      [](const auto& v) -> std::optional<std::int64_t> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (is_whole<T>) {
          if (v <= static_cast<T>(std::numeric_limits<T>::max())) {
            return static_cast<std::int64_t>(v);
          }
        } else if constexpr (std::is_same_v<T, GgufArray>) {
          return std::visit(
              [](const auto& items) -> std::optional<std::int64_t> {
                using Item = typename std::decay_t<decltype(items)>::value_type;
                if constexpr (is_whole<Item>) {
                  if (!items.empty()) return static_cast<std::int64_t>(items.front());
                }
                return std::nullopt;
              },
              v);
        }
        return std::nullopt;
      },
      value);
}

/// Reads numbers; of an array, the first layer's.
class Lookup {
public:
  Lookup(const GgufModel& model, std::span<const GgufKv> overrides)
      : model_(model), overrides_(overrides) {}

  std::optional<int> number(const std::string& key) const {
    const auto given = std::find_if(overrides_.begin(), overrides_.end(),
                                    [&](const GgufKv& kv) { return kv.key == key; });
    if (given != overrides_.end()) {
      if (const auto value = whole(given->value)) return static_cast<int>(*value);
    }
    const GgufValue* value = model_.find(key);
    if (value == nullptr) return std::nullopt;
    const auto found = whole(*value);
    if (!found || *found < 0 || *found > std::numeric_limits<int>::max()) return std::nullopt;
    return static_cast<int>(*found);
  }

private:
  const GgufModel& model_;
  std::span<const GgufKv> overrides_;
};

bool is_70b(const ModelFacts& facts, int main_layers) {
  const std::string& a = facts.architecture;
  if (a == "llama" || a == "llama-embed") {
    return main_layers == 80 && facts.experts != 8 && facts.heads != facts.kv_heads;
  }
  if (a == "jais2") return main_layers == 68;
  return (a == "qwen2" || a == "deci" || a == "olmo") && main_layers == 80;
}

} // namespace

Result<ModelFacts> model_facts(const GgufModel& model, std::span<const GgufKv> overrides) {
  ModelFacts facts;
  const GgufValue* architecture = model.find("general.architecture");
  if (architecture == nullptr || !std::holds_alternative<std::string>(*architecture)) {
    return fail(Errc::malformed, "quantizing: no string general.architecture in the metadata");
  }
  facts.architecture = std::get<std::string>(*architecture);
  if (facts.architecture == "clip") return facts; // has no layers of its own to speak of
  const Lookup lookup(model, overrides);
  const auto number = [&](std::string_view key) {
    return lookup.number(fmt::format("{}.{}", facts.architecture, key));
  };
  for (const std::string_view key : {"block_count", "context_length", "embedding_length"}) {
    if (!number(key)) {
      return fail(Errc::malformed,
                  fmt::format("quantizing: metadata '{}.{}' is missing or no whole number",
                              facts.architecture, key));
    }
  }
  facts.layers = *number("block_count");
  if (facts.layers < 1 || facts.layers > k_max_layers) {
    return fail(Errc::malformed, fmt::format("quantizing: block_count is {}; allowed are 1 to {}",
                                             facts.layers, k_max_layers));
  }
  facts.experts = number("expert_count").value_or(0);
  facts.heads = number("attention.head_count").value_or(0);
  facts.kv_heads = number("attention.head_count_kv").value_or(facts.heads);
  facts.is_70b = is_70b(facts, facts.layers - number("nextn_predict_layers").value_or(0));
  // One router layer behind the others; blocks that are run several times.
  if (facts.architecture == "graniteswitch") ++facts.layers;
  if (facts.architecture == "nanbeige") facts.layers *= number("num_loops").value_or(1);
  return facts;
}

} // namespace modeld::quantize
