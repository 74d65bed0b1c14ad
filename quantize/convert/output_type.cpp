// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/output_type.hpp"

#include "quantize/architecture/pattern.hpp"
#include "schema/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace modeld::quantize {
namespace {

/// Small tensors that every runtime reads as single precision (the reference's list).
constexpr std::array k_single{
    "blk.{bid}.ffn_gate_inp.weight",
    "blk.{bid}.ffn_gate_inp_shexp.weight",
    "position_embd.weight",
    "token_types.weight",
    "blk.{bid}.ssm_conv1d.weight",
    "blk.{bid}.shortconv.conv.weight",
    "blk.{bid}.time_mix_first.weight",
    "blk.{bid}.time_mix_w1.weight",
    "blk.{bid}.time_mix_w2.weight",
    "blk.{bid}.time_mix_decay_w1.weight",
    "blk.{bid}.time_mix_decay_w2.weight",
    "blk.{bid}.time_mix_lerp_fused.weight",
    "posnet.{bid}.norm1.weight",
    "posnet.{bid}.norm2.weight",
    "v.position_embd.weight",
    "a.position_embd.weight",
    "blk.{bid}.altup_correct_coef.weight",
    "blk.{bid}.altup_predict_coef.weight",
    "blk.{bid}.ssm_conv1d_q.weight",
    "blk.{bid}.ssm_conv1d_k.weight",
    "blk.{bid}.ssm_conv1d_v.weight",
    "blk.{bid}.indexer.proj.weight",
};

/// Kept in F16 where everything else becomes ternary.
constexpr std::array k_not_ternary{
    "token_embd.weight",
    "per_layer_token_embd.weight",
    "output.weight",
    "blk.{bid}.altup_router.weight",
    "blk.{bid}.laurel_l.weight",
    "blk.{bid}.laurel_r.weight",
};

template <std::size_t N>
bool is_one_of(const std::array<const char*, N>& patterns, const std::string& name) {
  static const std::vector<NamePattern> parsed = [&patterns] {
    std::vector<NamePattern> out;
    for (const char* pattern : patterns) {
      out.push_back(*NamePattern::parse(pattern));
    }
    return out;
  }();
  return std::any_of(parsed.begin(), parsed.end(),
                     [&](const NamePattern& p) { return p.match(name).has_value(); });
}

bool has_weight_suffix(std::string_view name) {
  return name.ends_with(".weight") || name.ends_with(".lora_a") || name.ends_with(".lora_b");
}

/// Convolutions that cut an image into patches: the runtimes' kernels take them in F32, or in F16
/// where the whole file is.
bool cuts_patches(std::string_view name) {
  return name.find(".patch_embd.weight") != std::string_view::npos ||
         name.find(".patch_merger.weight") != std::string_view::npos;
}

} // namespace

TensorType fitting(TensorType type, const Shape& shape) {
  const std::uint64_t row = shape.empty() ? 1 : shape.back();
  return row % info(type).block == 0 ? type : TensorType::f16;
}

TensorType choose_type(const std::string& name, const Shape& shape, const std::string& wanted,
                       const OutputType& file) {
  if (shape.size() <= 1 || name.ends_with("_norm.weight")) return TensorType::f32;
  if (wanted == "f32") return TensorType::f32;
  if (wanted == "f16") return TensorType::f16;
  if (cuts_patches(name)) {
    return file.tensors == TensorType::f16 ? TensorType::f16 : TensorType::f32;
  }
  if (wanted != "file" && (is_one_of(k_single, name) || !has_weight_suffix(name))) {
    return TensorType::f32;
  }
  const bool ternary = file.tensors == TensorType::tq1_0 || file.tensors == TensorType::tq2_0;
  if (ternary && is_one_of(k_not_ternary, name)) return TensorType::f16;
  return fitting(file.tensors, shape);
}

Result<OutputType> choose_file_type(std::string_view outtype, const Weights& weights) {
  std::string name(outtype);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name == "AUTO") {
    name = "F16";
    for (const NamedSource& source : weights.tensors) {
      if (source.tensor->shape().size() < 2) continue;
      if (source.tensor->type() == ElementType::bf16) name = "BF16";
      if (name == "BF16" || source.tensor->type() == ElementType::f16) break;
    }
  }
  for (const std::string_view known : {"F32", "F16", "BF16", "Q8_0", "TQ1_0", "TQ2_0"}) {
    if (name != known) continue;
    const TargetInfo* target = find_target(known);
    return OutputType{target->default_type, target->file_type, target->name};
  }
  return fail(Errc::invalid_argument,
              fmt::format("reading outtype '{}': known are auto, f32, f16, bf16, q8_0, tq1_0, "
                          "tq2_0",
                          outtype));
}

} // namespace modeld::quantize
