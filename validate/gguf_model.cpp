// SPDX-License-Identifier: Apache-2.0
#include "validate/gguf_model.hpp"

#include <charconv>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_max_block = 1'000'000; ///< a name may hold any number

/// N of "blk.N.".
std::optional<std::uint64_t> block_of(std::string_view name) {
  constexpr std::string_view k_prefix = "blk.";
  if (!name.starts_with(k_prefix)) return std::nullopt;
  name.remove_prefix(k_prefix.size());
  std::uint64_t block = 0;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), block);
  if (ec != std::errc{} || end == name.data() + name.size() || *end != '.' || block > k_max_block)
    return std::nullopt;
  return block;
}

} // namespace

void GgufModelView::add_tensors(const GgufHeader& part) {
  names_.reserve(tensors_.size() + part.tensors.size());
  for (const GgufTensorInfo& tensor : part.tensors) {
    const auto name_at = [&](std::uint32_t i) { return tensors_[i]->name; };
    names_.insert(tensor.name, static_cast<std::uint32_t>(tensors_.size()), name_at);
    tensors_.push_back(&tensor);
  }
}

const GgufTensorInfo* GgufModelView::find(std::string_view tensor) const {
  const auto at = names_.find(tensor, [&](std::uint32_t i) { return tensors_[i]->name; });
  return at ? tensors_[*at] : nullptr;
}

std::string_view GgufModelView::architecture() const {
  const GgufValueView* value = key("general.architecture");
  return value == nullptr ? std::string_view() : value->as_string().value_or(std::string_view());
}

const GgufValueView* GgufModelView::model_key(std::string_view name) const {
  return key(std::string(architecture()) + "." + std::string(name));
}

std::optional<std::uint64_t> GgufModelView::model_number(std::string_view name) const {
  const GgufValueView* value = model_key(name);
  return value == nullptr ? std::nullopt : value->as_u64();
}

std::optional<std::uint64_t> GgufModelView::layer_number(std::string_view name,
                                                         std::uint64_t layer) const {
  const GgufValueView* value = model_key(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) return value->as_u64();
  if (layer >= value->count || scalar_bytes(value->element) == 0) return std::nullopt;
  return value->at(layer).as_u64();
}

GgufModelView::Blocks GgufModelView::blocks() const {
  Blocks blocks;
  for (const GgufTensorInfo* tensor : tensors_) {
    const auto block = block_of(tensor->name);
    if (!block) continue;
    if (*block >= blocks.present.size())
      blocks.present.resize(static_cast<std::size_t>(*block) + 1);
    if (!blocks.present[static_cast<std::size_t>(*block)]) ++blocks.distinct;
    blocks.present[static_cast<std::size_t>(*block)] = true;
  }
  blocks.end = blocks.present.size();
  return blocks;
}

void check_gguf_model(const GgufModelView& model, Report& report) {
  const GgufValueView* type = model.key("general.type");
  const std::string_view kind =
      type == nullptr ? std::string_view() : type->as_string().value_or(std::string_view());
  if (kind == "adapter") return check_gguf_adapter(model, report);
  if (kind == "imatrix") return;
  if (model.architecture() == "clip" || kind == "mmproj")
    return check_gguf_projector(model, report);
  check_gguf_tokenizer(model, report);
  check_gguf_shape(model, report);
  check_gguf_lists(model, report);
  check_gguf_tensor_set(model, report);
}

} // namespace modeld::validate
