// SPDX-License-Identifier: Apache-2.0
// Numbers of a GGUF model against the shapes of its tensors: GX-10 to GX-14, GX-19.
#include "validate/escape.hpp"
#include "validate/gguf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_max_blocks = 512;   ///< LLAMA_MAX_LAYERS of the reference
constexpr std::uint64_t k_max_experts = 1024; ///< LLAMA_MAX_EXPERTS of the reference

/// No attention at all, or only in some layers.
bool is_recurrent(std::string_view architecture) {
  return architecture.starts_with("mamba") || architecture.find("rwkv") != std::string_view::npos;
}

/// A layer that pruning has emptied says so with zeros.
bool is_empty_layer(const GgufModelView& model, std::uint64_t layer) {
  return model.layer_number("attention.head_count", layer) == 0 &&
         model.layer_number("feed_forward_length", layer) == 0;
}

/// A file may hold the layers for multi-token prediction alone, which come last.
std::uint64_t first_block(const GgufModelView& model, const GgufModelView::Blocks& blocks,
                          std::uint64_t count) {
  const std::uint64_t more = model.model_number("nextn_predict_layers").value_or(0);
  if (more == 0 || more >= count) return 0;
  const auto own = blocks.present.begin() +
                   static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(blocks.end, count - more));
  return std::find(blocks.present.begin(), own, true) == own ? count - more : 0;
}

void check_blocks(const GgufModelView& model, Report& report) {
  const GgufValueView* value = model.model_key("block_count");
  if (value == nullptr) return;
  const std::uint64_t count = value->as_u64().value_or(0);
  if (count == 0 || count > k_max_blocks) {
    report.error("GX-10", value->offset,
                 fmt::format("block_count is {}, allowed are 1 to {}; llama.cpp ends the process",
                             value->as_u64() ? std::to_string(count) : "no number", k_max_blocks));
    return;
  }
  const GgufModelView::Blocks blocks = model.blocks();
  if (blocks.distinct == 0) return; // a vocabulary, or a model of encoder and decoder
  if (blocks.end > count) {
    report.error(
        "GX-10", value->offset,
        fmt::format("block_count is {}, and there are tensors of block {}", count, blocks.end - 1));
  }
  for (std::uint64_t i = first_block(model, blocks, count); i < count; ++i) {
    if (i < blocks.end && blocks.present[static_cast<std::size_t>(i)]) continue;
    if (is_empty_layer(model, i)) continue;
    report.error("GX-10", value->offset,
                 fmt::format("block_count is {}, and block {} has no tensors", count, i));
    return;
  }
}

void check_vocab_size(const GgufModelView& model, Report& report) {
  const GgufValueView* value = model.model_key("vocab_size");
  const GgufValueView* kind = model.key("tokenizer.ggml.model");
  const GgufTensorInfo* embedding = model.find("token_embd.weight");
  const bool vocabulary = model.key("tokenizer.ggml.tokens") != nullptr &&
                          (kind == nullptr || kind->as_string() != "no_vocab");
  if (value == nullptr || vocabulary || embedding == nullptr) return;
  if (value->as_u64().value_or(~std::uint64_t{0}) > embedding->ne[1]) {
    report.error("GX-11", value->offset,
                 fmt::format("vocab_size is {}, and token_embd.weight has {} rows",
                             value->as_u64().value_or(0), embedding->ne[1]));
  }
}

void check_layer(const GgufModelView& model, std::uint64_t layer, Report& report) {
  const auto heads = model.layer_number("attention.head_count", layer);
  if (!heads || *heads == 0) return;
  const std::uint64_t kv_heads =
      model.layer_number("attention.head_count_kv", layer).value_or(*heads);
  if (kv_heads == 0) return; // a layer without attention
  if (*heads % kv_heads != 0) {
    report.error("GX-12", std::nullopt,
                 fmt::format("layer {} has {} heads and {} key heads, which do not divide them",
                             layer, *heads, kv_heads));
  }
}

void check_attention(const GgufModelView& model, Report& report) {
  const GgufValueView* width = model.model_key("embedding_length");
  if (width == nullptr) return;
  const std::uint64_t embedding = width->as_u64().value_or(0);
  const GgufTensorInfo* tokens = model.find("token_embd.weight");
  if (tokens != nullptr && tokens->ne[0] != embedding) {
    report.error(
        "GX-12", width->offset,
        fmt::format("embedding_length is {}, and rows of token_embd.weight have {} elements",
                    embedding, tokens->ne[0]));
    return;
  }
  const GgufValueView* heads = model.model_key("attention.head_count");
  if (heads == nullptr || is_recurrent(model.architecture())) return;
  if (!heads->is_array()) {
    const std::uint64_t count = heads->as_u64().value_or(0);
    if (count == 0) {
      report.error("GX-12", heads->offset, "attention.head_count is 0, it must be positive");
      return;
    }
    if (embedding % count != 0 && model.model_key("attention.key_length") == nullptr) {
      report.error("GX-12", heads->offset,
                   fmt::format("embedding_length {} is no multiple of attention.head_count {}, and "
                               "there is no attention.key_length",
                               embedding, count));
      return;
    }
  }
  const std::uint64_t blocks = std::min(model.blocks().end, k_max_blocks);
  for (std::uint64_t layer = 0; layer < blocks && !report.full(); ++layer)
    check_layer(model, layer, report);
}

void check_experts(const GgufModelView& model, Report& report) {
  const auto largest = [&](std::string_view name) -> std::uint64_t {
    const GgufValueView* value = model.model_key(name);
    if (value == nullptr) return 0;
    if (!value->is_array()) return value->as_u64().value_or(0);
    std::uint64_t most = 0;
    if (is_integer(value->element))
      for (std::uint64_t i = 0; i < value->count; ++i)
        most = std::max(most, value->at(i).as_u64().value_or(0));
    return most;
  };
  const std::uint64_t experts = largest("expert_count");
  const std::uint64_t used = largest("expert_used_count");
  const std::uint64_t groups = largest("expert_group_count");
  const std::uint64_t groups_used = largest("expert_group_used_count");
  const auto offset = [&](std::string_view name) { return model.model_key(name)->offset; };
  if (experts > k_max_experts) {
    report.error("GX-13", offset("expert_count"),
                 fmt::format("expert_count is {}, allowed are {}", experts, k_max_experts));
  }
  if (used > experts) {
    report.error("GX-13", offset("expert_used_count"),
                 fmt::format("expert_used_count is {}, there are {} experts", used, experts));
  }
  if (groups > 0 && (experts % groups != 0 || groups_used > groups)) {
    report.error("GX-13", offset("expert_group_count"),
                 fmt::format("{} groups of which {} are used do not divide {} experts", groups,
                             groups_used, experts));
  }
}

} // namespace

void check_gguf_shape(const GgufModelView& model, Report& report) {
  if (model.architecture().empty()) return;
  check_blocks(model, report);
  check_vocab_size(model, report);
  check_attention(model, report);
  check_experts(model, report);
  const GgufValueView* context = model.model_key("context_length");
  if (context != nullptr && context->as_u64() == 0)
    report.warn("GX-19", context->offset, "context_length is 0");
}

void check_gguf_lists(const GgufModelView& model, Report& report) {
  constexpr auto k_per_layer = std::to_array<std::string_view>(
      {"feed_forward_length", "attention.head_count", "attention.head_count_kv", "expert_count",
       "expert_used_count", "expert_feed_forward_length", "attention.sliding_window_pattern",
       "attention.recurrent_layers"});
  const auto blocks = model.model_number("block_count");
  // Lists may leave the layers for multi-token prediction out.
  const std::uint64_t more = model.model_number("nextn_predict_layers").value_or(0);
  for (const std::string_view name : k_per_layer) {
    const GgufValueView* list = model.model_key(name);
    if (!blocks || list == nullptr || !list->is_array()) continue;
    if (list->count == *blocks || (more <= *blocks && list->count == *blocks - more)) continue;
    report.error("GX-14", list->offset,
                 fmt::format("{} has {} elements, it must have one for each of {} layers", name,
                             list->count, *blocks));
  }
  const GgufValueView* sections = model.model_key("rope.dimension_sections");
  if (sections != nullptr && (!sections->is_array() || sections->count != 4))
    report.error("GX-14", sections->offset, "rope.dimension_sections must have 4 elements");
}

} // namespace modeld::validate
