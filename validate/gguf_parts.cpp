// SPDX-License-Identifier: Apache-2.0
// Which tensors a GGUF file must have and how large, and the two kinds of file that are no whole
// model: GX-12, GX-15 to GX-18.
#include "validate/escape.hpp"
#include "validate/gguf_architectures.hpp"
#include "validate/gguf_model.hpp"
#include "validate/model_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace modeld::validate {
namespace {

using T = GgufType;

/// What an architecture in schema/gguf_tensors.txt needs and has not, or has in another shape.
void compare_with_table(const GgufModelView& model, const ModelTensors& table, Report& report) {
  for (const std::string& name : find_lacking(model, table)) {
    if (report.full()) return;
    report.error("GX-15", std::nullopt,
                 fmt::format("tensor '{}' is missing, the architecture {} needs it", name,
                             quoted(model.architecture())));
  }
  for (const TensorMisfit& misfit : find_misfits(model, table)) {
    if (report.full()) return;
    // The vocabulary is compared by rules of its own: GX-01, GX-11.
    if (misfit.tensor->name == "token_embd.weight") continue;
    std::vector<std::optional<std::uint64_t>> shape(misfit.tensor->ne.begin(),
                                                    misfit.tensor->ne.end());
    shape.resize(std::max<std::size_t>(misfit.tensor->n_dims, misfit.expected.size()), 1);
    report.error("GX-12", misfit.tensor->info_offset,
                 fmt::format("{} is {}, {} make it {}", quoted(misfit.tensor->name),
                             shape_text(shape), misfit.because, shape_text(misfit.expected)));
  }
}

/// Scales and layers for multi-token prediction may stand in any model.
bool has_place(const ModelTensors& table, std::string_view name) {
  const LocalName local = LocalName::of(name);
  return table.dims(local.name, local.block.has_value()) || local.name.starts_with("nextn.") ||
         name.ends_with(".scale") || name.ends_with(".input_scale");
}

void check_file_type(const GgufModelView& model, Report& report) {
  const GgufValueView* value = model.key("general.file_type");
  if (value == nullptr) return;
  std::map<TensorType, std::uint64_t> elements;
  for (const GgufTensorInfo* tensor : model.tensors())
    elements[tensor->type] += tensor->elements();
  const auto most =
      std::max_element(elements.begin(), elements.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  // File types 0 and 1 are plain; all others name a block type in their own numbering.
  const auto type = value->as_u64();
  if (most == elements.end() || !type) return;
  const bool plain = most->first == TensorType::f32 || most->first == TensorType::f16 ||
                     most->first == TensorType::bf16;
  const bool claims_plain = *type == 0 || *type == 1 || *type == 32;
  if (plain != claims_plain) {
    report.note("GX-16", value->offset,
                fmt::format("general.file_type is {}, and most elements are {}", *type,
                            info(most->first).name));
  }
}

} // namespace

void check_gguf_tensor_set(const GgufModelView& model, Report& report) {
  // Without a number of layers the file is no model.
  if (model.model_key("block_count") == nullptr || model.tensors().empty()) return;
  const auto table = ModelTensors::of(model.architecture());
  for (const GgufTensorInfo* tensor : model.tensors()) {
    if (report.full()) break;
    const bool known = is_known_gguf_tensor(tensor->name);
    if (known && (!table || has_place(*table, tensor->name))) continue;
    report.warn("GX-15", tensor->info_offset,
                fmt::format("{} has a tensor {}, llama.cpp refuses the file for it",
                            known ? "another architecture than " + quoted(model.architecture())
                                  : "no architecture",
                            quoted(tensor->name)));
  }
  if (table) compare_with_table(model, *table, report);
  check_file_type(model, report);
}

void check_gguf_adapter(const GgufModelView& model, Report& report) {
  const GgufValueView* type = model.key("adapter.type");
  if (type == nullptr || type->as_string() != "lora") {
    report.error("GX-17", std::nullopt, "an adapter needs adapter.type 'lora'");
    return;
  }
  const GgufValueView* alpha = model.key("adapter.lora.alpha");
  if (alpha == nullptr || alpha->type != T::f32)
    report.error("GX-17", std::nullopt, "an adapter needs adapter.lora.alpha as f32");
  else if (!std::isfinite(*alpha->as_f64()))
    report.error("GX-17", alpha->offset, "adapter.lora.alpha is not a finite number");
  for (const GgufTensorInfo* tensor : model.tensors()) {
    if (report.full()) break;
    constexpr std::string_view k_a = ".lora_a";
    constexpr std::string_view k_b = ".lora_b";
    const bool is_a = tensor->name.ends_with(k_a);
    if (!is_a && !tensor->name.ends_with(k_b)) continue;
    const std::string base(tensor->name.substr(0, tensor->name.size() - k_a.size()));
    const GgufTensorInfo* other = model.find(base + std::string(is_a ? k_b : k_a));
    if (other == nullptr) {
      report.error("GX-17", tensor->info_offset,
                   fmt::format("tensor {} has no partner '{}'", quoted(tensor->name),
                               is_a ? "lora_b" : "lora_a"));
    } else if (is_a && tensor->ne[1] != other->ne[0] &&
               !base.ends_with("token_embd.weight")) { // stored the other way round there
      report.error("GX-17", tensor->info_offset,
                   fmt::format("the ranks of {} and its partner differ: {} and {}",
                               quoted(tensor->name), tensor->ne[1], other->ne[0]));
    }
  }
}

void check_gguf_projector(const GgufModelView& model, Report& report) {
  const auto range = [&](std::string_view key, std::uint64_t least, std::uint64_t most) {
    const GgufValueView* value = model.key(key);
    if (value == nullptr) return;
    const auto number = value->as_u64();
    if (number && *number >= least && *number <= most) return;
    report.error("GX-18", value->offset,
                 fmt::format("{} is {}, allowed are {} to {}", key,
                             number ? std::to_string(*number) : "no number", least, most));
  };
  constexpr std::uint64_t k_any = ~std::uint64_t{0};
  range("clip.vision.patch_size", 1, 65535);
  range("clip.vision.image_size", 1, 8192);
  range("clip.vision.embedding_length", 1, k_any);
  range("clip.audio.embedding_length", 1, k_any);
  range("clip.vision.spatial_merge_size", 1, k_any);
  range("clip.vision.projector.scale_factor", 1, k_any);
  for (const std::string_view key : {"clip.vision.image_mean", "clip.vision.image_std"}) {
    const GgufValueView* list = model.key(key);
    if (list != nullptr && (!list->is_array() || list->count < 3))
      report.error("GX-14", list->offset, fmt::format("{} must have at least 3 elements", key));
  }
  const GgufValueView* points = model.key("clip.vision.image_grid_pinpoints");
  if (points != nullptr && (!points->is_array() || points->count % 2 != 0))
    report.error("GX-14", points->offset,
                 fmt::format("clip.vision.image_grid_pinpoints has {} elements, it must be pairs",
                             points->count));
}

} // namespace modeld::validate
