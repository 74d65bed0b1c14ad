// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/dequant_compressed.hpp"

#include "quantize/convert/source_dequant.hpp"
#include "quantize/convert/transform_value.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <utility>

namespace modeld::quantize {
namespace {

Result<void> move_reciprocal(QuantizedWeights& weights, const std::string& from,
                             const std::string& to) {
  const SourcePtr old = weights.find(from);
  std::vector<float> values(old->elements());
  MODELD_TRY(read_f32(*old, 0, values.size(), values.data()));
  for (float& value : values) {
    value = 1.0F / value;
  }
  weights.rename_to_end(from, to, owned_tensor(old->shape(), std::move(values)));
  return {};
}

Result<void> scaled(QuantizedWeights& weights, const Settings& how, std::string_view format) {
  const std::string strategy = how.text("strategy");
  if ((strategy != "channel" && strategy != "block") || how.find("group_size") != nullptr) {
    return fail(Errc::unsupported, fmt::format("converting: compressed-tensors strategy '{}' "
                                               "cannot be read; known are channel and block",
                                               strategy));
  }
  const std::vector<std::uint64_t> block = how.sizes("block_structure");
  const bool fp8 =
      format == "float-quantized" && how.text("type") == "float" && how.whole("num_bits", 0) == 8;
  for (const std::string& name : weights.names()) {
    std::string weight = name;
    if (!name.ends_with(".weight_scale")) continue;
    take_suffix(weight, "_scale");
    MODELD_TRY(weights.scale(weight, name, block, fp8));
  }
  return {};
}

Result<void> packed(QuantizedWeights& weights, const Settings& how) {
  const std::string type = how.text("type");
  if (how.text("strategy") != "group" || (!type.empty() && type != "int")) {
    return fail(Errc::unsupported, "converting: packed weights are read in groups of integers "
                                   "only");
  }
  for (const std::string& name : weights.names()) {
    std::string base = name;
    if (!name.ends_with(".weight_packed")) continue;
    take_suffix(base, "_packed");
    PackedParts parts;
    MODELD_ASSIGN(parts.packed, weights.need(name));
    MODELD_ASSIGN(parts.scale, weights.need(base + "_scale"));
    MODELD_ASSIGN(parts.shape, weights.need(base + "_shape"));
    parts.zero_point = weights.find(base + "_zero_point");
    auto value = packed_weight(parts, how.whole("num_bits", 0), how.whole("group_size", 0));
    if (!value) return fail(QuantizedWeights::about(std::move(value.error()), base));
    NamedSource& plain = weights.append(base, *std::move(value));
    for (const std::string_view part : {"_packed", "_scale", "_shape", "_zero_point"}) {
      weights.take_into(plain, base + std::string(part));
    }
  }
  return {};
}

} // namespace

Result<void> rename_compressed(QuantizedWeights& weights) {
  for (const std::string& name : weights.names()) {
    std::string base = name;
    if (take_suffix(base, ".weight_packed")) {
      weights.rename_to_end(name, base + ".weight", weights.find(name));
    } else if (take_suffix(base, ".weight_global_scale")) {
      MODELD_TRY(move_reciprocal(weights, name, base + ".weight_scale_2"));
    } else if (base = name; take_suffix(base, ".input_global_scale")) {
      MODELD_TRY(move_reciprocal(weights, name, base + ".input_scale"));
    }
  }
  return {};
}

Result<void> dequantize_compressed(QuantizedWeights& weights,
                                   const QuantizationSettings& settings) {
  if (settings.compressed_nvfp4) return {};
  if (settings.groups.size() != 1) {
    return fail(Errc::unsupported,
                fmt::format("converting: compressed-tensors with {} groups of settings; only one "
                            "can be read",
                            settings.groups.size()));
  }
  const Settings group(settings.groups.begin()->value().if_object());
  const Settings how(group.object("weights"));
  if (settings.format == "pack-quantized") return packed(weights, how);
  if (settings.format == "float-quantized" || settings.format == "int-quantized" ||
      settings.format == "naive-quantized") {
    return scaled(weights, how, settings.format);
  }
  return fail(Errc::unsupported,
              fmt::format("converting: compressed-tensors format '{}' cannot "
                          "be read",
                          settings.format),
              "known are float-quantized, int-quantized, naive-quantized, pack-quantized, "
              "nvfp4-pack-quantized");
}

} // namespace modeld::quantize
