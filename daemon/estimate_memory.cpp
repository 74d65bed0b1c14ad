// SPDX-License-Identifier: Apache-2.0
#include "daemon/estimate.hpp"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace modeld::daemon {
namespace {

using quantize::GgufArray;
using quantize::GgufModel;
using quantize::GgufValue;

constexpr std::uint64_t k_usual_context = 8192; // tokens, where nobody says
constexpr std::uint64_t k_batch = 512;          // tokens that a runtime computes at once
constexpr std::uint64_t k_cache_element = 2;    // bytes: F16
constexpr std::uint64_t k_float = 4;            // bytes

template <class T>
std::uint64_t as_number(T value) {
  if constexpr (std::is_same_v<T, bool>) return value ? 1 : 0;
  if constexpr (std::is_arithmetic_v<T>) {
    return value > T{} ? static_cast<std::uint64_t>(value) : 0;
  }
  return 0;
}

// The metadata of one architecture.
class Keys {
public:
  explicit Keys(const GgufModel& model) : model_(model) {
    const auto* arch = model.find("general.architecture");
    if (arch != nullptr && std::holds_alternative<std::string>(*arch)) {
      architecture = std::get<std::string>(*arch);
    }
  }

  /// The value for a layer: that of an array at its place, or one number for all; else `otherwise`.
  std::uint64_t get(std::string_view name, std::uint64_t otherwise, std::uint64_t layer = 0) const {
    const auto* value = model_.find(architecture + "." + std::string(name));
    if (value == nullptr) return otherwise;
    return std::visit(
        [&](const auto& held) -> std::uint64_t {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<Held, GgufArray>) {
            return element(held, layer, otherwise);
          } else if constexpr (std::is_same_v<Held, std::string>) {
            return otherwise;
          } else {
            return as_number(held);
          }
        },
        *value);
  }

  std::string architecture;

private:
  static std::uint64_t element(const GgufArray& array, std::uint64_t at, std::uint64_t otherwise) {
    return std::visit(
        [&](const auto& list) -> std::uint64_t {
          using Item = typename std::decay_t<decltype(list)>::value_type;
          if constexpr (std::is_same_v<Item, std::string>) {
            return otherwise;
          } else {
            return at < list.size() ? as_number<Item>(list[at]) : otherwise;
          }
        },
        array);
  }

  const GgufModel& model_;
};

std::uint64_t vocabulary(const GgufModel& model, const Keys& keys) {
  if (const std::uint64_t size = keys.get("vocab_size", 0); size > 0) return size;
  const auto* tokens = model.find("tokenizer.ggml.tokens");
  if (tokens == nullptr || !std::holds_alternative<GgufArray>(*tokens)) return 0;
  return std::visit([](const auto& list) { return std::uint64_t{list.size()}; },
                    std::get<GgufArray>(*tokens));
}

// Bytes for one token of one layer; 0 for a layer without attention.
std::uint64_t cache_of_layer(const Keys& keys, std::uint64_t layer) {
  const std::uint64_t heads = keys.get("attention.head_count", 0, layer);
  const std::uint64_t kv_heads = keys.get("attention.head_count_kv", heads, layer);
  const std::uint64_t width = heads == 0 ? 0 : keys.get("embedding_length", 0) / heads;
  const std::uint64_t key = keys.get("attention.key_length", width);
  const std::uint64_t value = keys.get("attention.value_length", width);
  return kv_heads * (key + value) * k_cache_element;
}

// Bytes of what a recurrent layer keeps, whatever the context.
std::uint64_t state_of_layer(const Keys& keys) {
  const std::uint64_t inner = keys.get("ssm.inner_size", 0);
  const std::uint64_t state = keys.get("ssm.state_size", 0);
  const std::uint64_t kernel = keys.get("ssm.conv_kernel", 1);
  const std::uint64_t groups = keys.get("ssm.group_count", 0);
  const std::uint64_t convolved = inner + 2 * groups * state;
  return (inner * state + (std::max<std::uint64_t>(kernel, 1) - 1) * convolved) * k_float;
}

} // namespace

Estimate estimate_memory(const GgufModel& model, std::uint64_t context) {
  const Keys keys(model);
  Estimate out;
  out.architecture = keys.architecture;
  if (const auto* name = model.find("general.name");
      name != nullptr && std::holds_alternative<std::string>(*name)) {
    out.name = std::get<std::string>(*name);
  }
  for (const auto& tensor : model.tensors) {
    out.parameters += tensor.row_elements() * tensor.rows();
  }
  out.trained_context = keys.get("context_length", 0);
  out.context = context;
  if (context == 0) {
    out.context =
        out.trained_context == 0 ? k_usual_context : std::min(out.trained_context, k_usual_context);
  }
  std::uint64_t widest = 0;
  // A file may claim any number of layers; a model has fewer than it has tensors.
  const std::uint64_t layers =
      std::min<std::uint64_t>(keys.get("block_count", 0), model.tensors.size());
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::uint64_t cache = cache_of_layer(keys, layer);
    out.cache_bytes += cache == 0 ? state_of_layer(keys) : cache * out.context;
    widest = std::max(widest, keys.get("feed_forward_length", 0, layer));
  }
  const std::uint64_t embedding = keys.get("embedding_length", 0);
  out.buffer_bytes = k_batch * k_float * (vocabulary(model, keys) + 2 * widest + 4 * embedding);
  return out;
}

} // namespace modeld::daemon
