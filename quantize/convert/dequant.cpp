// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/dequant.hpp"

#include "quantize/convert/dequant_compressed.hpp"
#include "quantize/convert/source_dequant.hpp"
#include "quantize/convert/transform_view.hpp"

#include <fmt/format.h>

#include <utility>

namespace modeld::quantize {
namespace {

Result<void> take_nvfp4(QuantizedWeights& weights) {
  for (const std::string& name : weights.names()) {
    std::string base = name;
    if (!take_suffix(base, ".weight")) continue;
    const SourcePtr scale = weights.find(base + ".weight_scale");
    if (scale == nullptr || scale->shape().size() < 2) continue;
    auto blocks = nvfp4_blocks(weights.find(name), scale);
    if (!blocks) return fail(QuantizedWeights::about(std::move(blocks.error()), name));
    NamedSource source{name, *std::move(blocks), {}, false, true, nullptr, nullptr};
    source.scale2 = weights.find(base + ".weight_scale_2");
    source.input_scale = weights.find(base + ".input_scale");
    NamedSource& kept = weights.put_front(std::move(source));
    for (const std::string_view suffix :
         {".weight", ".weight_scale", ".weight_scale_2", ".input_scale"}) {
      weights.take_into(kept, base + std::string(suffix));
    }
  }
  for (const std::string& name : weights.names()) {
    if (name.ends_with(".k_scale") || name.ends_with(".v_scale")) weights.remove(name);
  }
  return {};
}

Result<void> bitnet(QuantizedWeights& weights) {
  for (const std::string& name : weights.names()) {
    std::string weight = name;
    if (!name.ends_with(".weight_scale")) continue;
    take_suffix(weight, "_scale");
    MODELD_ASSIGN(SourcePtr packed, weights.need(weight));
    MODELD_TRY(
        weights.replace(weight, bitnet_weight(std::move(packed), weights.find(name)), false));
    weights.take_into(weights.at(weight), name);
  }
  return {};
}

Result<void> fp8(QuantizedWeights& weights, const Settings& settings) {
  const std::vector<std::uint64_t> block = settings.sizes("weight_block_size");
  for (const std::string& name : weights.names()) {
    std::string weight = name;
    if (take_suffix(weight, "_scale_inv")) {
      MODELD_TRY(weights.scale(weight, name, block, true));
    } else if (take_suffix(weight, ".qscale_weight")) {
      MODELD_TRY(weights.scale(weight + ".weight", name, block, true));
    } else if (name.ends_with(".activation_scale") || name.ends_with("_activation_scale") ||
               name.ends_with(".qscale_act")) {
      weights.remove(name);
    }
  }
  return {};
}

Result<void> gptq(QuantizedWeights& weights, const Settings& settings) {
  const std::string form = settings.text("checkpoint_format");
  const std::int64_t shift = form.empty() || form == "gptq" ? 1 : 0;
  for (const std::string& name : weights.names()) {
    std::string base = name;
    if (!take_suffix(base, ".qweight")) continue;
    GptqParts parts;
    MODELD_ASSIGN(parts.qweight, weights.need(name));
    MODELD_ASSIGN(parts.qzeros, weights.need(base + ".qzeros"));
    MODELD_ASSIGN(parts.scales, weights.need(base + ".scales"));
    MODELD_ASSIGN(parts.g_idx, weights.need(base + ".g_idx"));
    auto value = gptq_weight(parts, settings.whole("bits", 0), shift);
    if (!value) return fail(QuantizedWeights::about(std::move(value.error()), base));
    NamedSource& plain = weights.append(base + ".weight", *std::move(value));
    for (const std::string_view part : {".qweight", ".qzeros", ".scales", ".g_idx"}) {
      weights.take_into(plain, base + std::string(part));
    }
  }
  return {};
}

Result<void> modelopt(QuantizedWeights& weights) {
  for (const std::string& name : weights.names()) {
    std::string weight = name;
    if (name.ends_with(".weight_scale")) {
      take_suffix(weight, "_scale");
      const SourcePtr values = weights.find(weight);
      if (values == nullptr) {
        weights.remove(name);
        continue;
      }
      const bool fp8 =
          values->type() == ElementType::f8_e4m3 || values->type() == ElementType::f8_e5m2;
      MODELD_TRY(weights.scale(weight, name, {}, fp8));
    } else if (name.ends_with(".input_scale") || name.ends_with(".k_scale") ||
               name.ends_with(".v_scale")) {
      weights.remove(name);
    }
  }
  return {};
}

/// "X_blocks" and "X_scales" become "X_packed".
Result<void> mxfp4(QuantizedWeights& weights) {
  for (const std::string& name : weights.names()) {
    std::string base = name;
    if (!take_suffix(base, "_scales")) continue;
    MODELD_ASSIGN(const SourcePtr blocks, weights.need(base + "_blocks"));
    const SourcePtr scales = weights.find(name);
    std::vector<std::int64_t> flat;
    for (const std::uint64_t n : scales->shape()) {
      flat.push_back(static_cast<std::int64_t>(n));
    }
    if (!flat.empty()) flat.back() *= 16;
    auto shaped = reshape(blocks, flat);
    if (!shaped) return fail(QuantizedWeights::about(std::move(shaped.error()), base));
    auto packed = mxfp4_blocks(*std::move(shaped), scales);
    if (!packed) return fail(QuantizedWeights::about(std::move(packed.error()), base));
    NamedSource& kept = weights.put_front(
        {base + "_packed", *std::move(packed), {}, false, true, nullptr, nullptr});
    weights.take_into(kept, base + "_blocks");
    weights.take_into(kept, name);
  }
  return {};
}

tl::unexpected<Error> unknown_method(std::string_view method) {
  return fail(
      Errc::unsupported,
      fmt::format("converting: the checkpoint is quantized by '{}', which cannot be read", method),
      "known are fp8, compressed-tensors, gptq, bitnet, modelopt (NVFP4) and, for gpt-oss, "
      "mxfp4; look for the original, unquantized repository");
}

Result<void> by_method(QuantizedWeights& weights, const QuantizationSettings& settings,
                       const Architecture& family) {
  const std::string& method = settings.method;
  if (method.empty()) {
    if (settings.part.contains("quant_method")) return unknown_method(method);
    return {};
  }
  const Settings part(&settings.part);
  if (method == "bitnet") return bitnet(weights);
  if (method == "fp8") return fp8(weights, part);
  if (method == "gptq") return gptq(weights, part);
  if (method == "compressed-tensors") return dequantize_compressed(weights, settings);
  if (method == "modelopt") return modelopt(weights);
  if (settings.mxfp4 && family.arch == "gpt-oss") return mxfp4(weights);
  return unknown_method(method);
}

/// FP8 without a scale would come out as numbers that look plausible (failure case A09).
Result<void> refuse_unscaled(const Weights& weights) {
  for (const NamedSource& source : weights.tensors) {
    const ElementType type = source.tensor->type();
    if (type != ElementType::f8_e4m3 && type != ElementType::f8_e5m2) continue;
    return fail(
        Errc::unsupported,
        fmt::format("reading tensor '{}': it is {} and has no scale", source.name, info(type).name),
        "pass --force to take the numbers as they are");
  }
  return {};
}

} // namespace

Result<SourceQuantization> dequantize_weights(Weights& weights, const ModelConfig& config,
                                              const FileSet& files, bool force) {
  MODELD_ASSIGN(const QuantizationSettings settings, read_quantization(config, files));
  QuantizedWeights all(weights);
  if (settings.nvfp4) {
    if (settings.method == "compressed-tensors") MODELD_TRY(rename_compressed(all));
    MODELD_TRY(take_nvfp4(all));
  }
  if (!settings.nvfp4 || all.any_scale_left()) {
    MODELD_TRY(by_method(all, settings, *config.family));
  }
  all.apply();
  const bool declared = !settings.method.empty();
  if (!force && declared) MODELD_TRY(refuse_unscaled(weights));
  return SourceQuantization{settings.nvfp4, settings.mxfp4, declared};
}

} // namespace modeld::quantize
