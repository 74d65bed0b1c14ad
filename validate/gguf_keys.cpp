// SPDX-License-Identifier: Apache-2.0
// Keys with a fixed meaning: GG-20 to GG-23.
#include "validate/escape.hpp"
#include "validate/gguf_architectures.hpp"
#include "validate/gguf_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace modeld::validate {
namespace {

using T = GgufType;

constexpr std::uint64_t k_max_alignment = std::uint64_t{1} << 20;
constexpr std::uint64_t k_usual_alignment = std::uint64_t{64} << 10;
constexpr std::uint64_t k_quantization_version = 2;

struct KnownKey {
  std::string_view name; ///< the whole key, or what follows "<architecture>."
  GgufType type;
  bool per_layer = false; ///< an array of integers, one a layer, will do
};

constexpr std::array k_general{
    KnownKey{"general.type", T::string},
    KnownKey{"general.name", T::string},
    KnownKey{"general.quantization_version", T::u32},
    KnownKey{"general.file_type", T::u32},
    KnownKey{"tokenizer.ggml.model", T::string},
    KnownKey{"tokenizer.ggml.pre", T::string},
    KnownKey{"tokenizer.ggml.token_type_count", T::u32},
    KnownKey{"tokenizer.ggml.add_bos_token", T::boolean},
    KnownKey{"tokenizer.ggml.add_eos_token", T::boolean},
    KnownKey{"tokenizer.ggml.add_sep_token", T::boolean},
    KnownKey{"tokenizer.ggml.add_space_prefix", T::boolean},
    KnownKey{"tokenizer.ggml.remove_extra_whitespaces", T::boolean},
    KnownKey{"tokenizer.chat_template", T::string},
};

constexpr std::array k_model{
    KnownKey{"vocab_size", T::u32},
    KnownKey{"context_length", T::u32},
    KnownKey{"embedding_length", T::u32},
    KnownKey{"block_count", T::u32},
    KnownKey{"leading_dense_block_count", T::u32},
    KnownKey{"feed_forward_length", T::u32, true},
    KnownKey{"expert_feed_forward_length", T::u32, true},
    KnownKey{"expert_shared_feed_forward_length", T::u32, true},
    KnownKey{"expert_count", T::u32, true},
    KnownKey{"expert_used_count", T::u32, true},
    KnownKey{"expert_shared_count", T::u32},
    KnownKey{"expert_group_count", T::u32},
    KnownKey{"expert_group_used_count", T::u32},
    KnownKey{"attention.head_count", T::u32, true},
    KnownKey{"attention.head_count_kv", T::u32, true},
    KnownKey{"attention.key_length", T::u32, true},
    KnownKey{"attention.value_length", T::u32, true},
    KnownKey{"attention.layer_norm_epsilon", T::f32},
    KnownKey{"attention.layer_norm_rms_epsilon", T::f32},
    KnownKey{"attention.causal", T::boolean},
    KnownKey{"rope.freq_base", T::f32},
    KnownKey{"rope.scaling.factor", T::f32},
    KnownKey{"rope.scaling.type", T::string},
    KnownKey{"rope.scaling.original_context_length", T::u32},
};

} // namespace

void GgufReader::read_alignment() {
  const GgufValueView* value = header_.find("general.alignment");
  if (value == nullptr) return;
  if (value->type != T::u32) {
    report_.error(
        "GG-20", value->offset,
        fmt::format("general.alignment is of type {}, it must be u32", name(value->type)));
    layout_known_ = false;
    return;
  }
  const std::uint64_t alignment = *value->as_u64();
  if (!std::has_single_bit(alignment) || alignment > k_max_alignment) {
    report_.error("GG-20", value->offset,
                  fmt::format("general.alignment is {}, llama.cpp loads powers of two and we allow "
                              "up to {}{}",
                              alignment, k_max_alignment,
                              alignment != 0 && alignment % 8 == 0 && alignment < k_max_alignment
                                  ? "; as a multiple of 8 it is legal by the format's description"
                                  : ""));
    layout_known_ = false;
    return;
  }
  if (alignment < 8 || alignment > k_usual_alignment) {
    report_.warn(
        "GG-20", value->offset,
        fmt::format("general.alignment is {}, usual are 8 to {}", alignment, k_usual_alignment));
  }
  header_.alignment = static_cast<std::uint32_t>(alignment);
}

void GgufReader::check_architecture() {
  const GgufValueView* value = header_.find("general.architecture");
  if (value == nullptr) {
    const GgufValueView* kind = header_.find("general.type");
    if (kind != nullptr && kind->as_string() == "imatrix") return;
    // Later parts of a split have the split's keys only; whether all of them is SP-01's question.
    const GgufValueView* part = header_.find("split.no");
    if (part != nullptr ? part->as_u64().value_or(0) > 0 : header_.find("split.count") != nullptr)
      return;
    if (header_.tensors.empty())
      report_.note("GG-21", std::nullopt, "there is neither a tensor nor general.architecture");
    else
      report_.error("GG-21", std::nullopt, "general.architecture is missing, a model needs it");
    return;
  }
  const auto text = value->as_string();
  if (!text) {
    report_.error(
        "GG-21", value->offset,
        fmt::format("general.architecture is of type {}, it must be a string", name(value->type)));
  } else if (!is_known_gguf_architecture(*text)) {
    report_.warn("GG-21", value->offset,
                 fmt::format("architecture {} is not one that llama.cpp knows", quoted(*text)));
  }
}

void GgufReader::check_known_types() {
  const auto check = [&](const KnownKey& key, std::string_view full) {
    const GgufValueView* value = header_.find(full);
    if (value == nullptr || value->type == key.type || report_.full()) return;
    if (key.per_layer && value->is_array() && is_integer(value->element)) return;
    report_.warn("GG-23", value->offset,
                 fmt::format("key {} is of type {}, llama.cpp reads {} only", quoted(full),
                             name(value->type), name(key.type)));
  };
  for (const KnownKey& key : k_general)
    check(key, key.name);
  const GgufValueView* architecture = header_.find("general.architecture");
  if (architecture == nullptr || !architecture->as_string()) return;
  for (const KnownKey& key : k_model)
    check(key, std::string(*architecture->as_string()) + "." + std::string(key.name));
}

void GgufReader::check_quantization_version() {
  const auto quantized = std::find_if(
      header_.tensors.begin(), header_.tensors.end(),
      [](const GgufTensorInfo& tensor) { return modeld::info(tensor.type).quantized; });
  if (quantized == header_.tensors.end()) return;
  const GgufValueView* value = header_.find("general.quantization_version");
  if (value == nullptr) {
    report_.warn("GG-22", std::nullopt,
                 "there are quantized tensors and no general.quantization_version");
  } else if (value->as_u64() != k_quantization_version) {
    report_.warn("GG-22", value->offset,
                 fmt::format("general.quantization_version is {}, current is {}",
                             value->as_u64() ? std::to_string(*value->as_u64()) : "no number",
                             k_quantization_version));
  }
}

} // namespace modeld::validate
