// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/dequant.hpp"

#include "quantize/convert/source_dequant.hpp"
#include "quantize/convert/transform_value.hpp"
#include "quantize/convert/transform_view.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// Members of the quantization part of a configuration, null where there are none.
class Settings {
public:
  explicit Settings(const json::object* object) : object_(object) {}
  const json::value* find(std::string_view name) const {
    const json::value* value = object_ == nullptr ? nullptr : object_->if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  std::string text(std::string_view name) const {
    const json::value* value = find(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  }
  const json::object* object(std::string_view name) const {
    const json::value* value = find(name);
    return value == nullptr ? nullptr : value->if_object();
  }
  std::int64_t whole(std::string_view name, std::int64_t fallback) const {
    const json::value* value = find(name);
    return value == nullptr ? fallback : as_integer(*value).value_or(fallback);
  }
  bool there() const { return object_ != nullptr; }

private:
  const json::object* object_;
};

bool take_suffix(std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.resize(name.size() - suffix.size());
  return true;
}

/// The weights by name while parts of them are replaced.
class Dequantizer {
public:
  Dequantizer(Weights& weights, const ModelConfig& config, const FileSet& files)
      : weights_(weights), config_(config), files_(files) {
    for (std::size_t i = 0; i < weights_.tensors.size(); ++i) {
      places_[weights_.tensors[i].name] = i;
    }
  }

  Result<SourceQuantization> run() {
    MODELD_TRY(read_settings());
    if (nvfp4_) {
      if (method_ == "compressed-tensors") MODELD_TRY(rename_compressed());
      MODELD_TRY(take_nvfp4());
    }
    if (!nvfp4_ || any_scale_left()) MODELD_TRY(by_method());
    apply();
    return SourceQuantization{nvfp4_, mxfp4_, !method_.empty()};
  }

private:
  Result<void> read_settings() {
    const json::value* part = config_.values.if_contains("quantization_config");
    if (part != nullptr && part->is_object()) config_part_ = part->get_object();
    Settings settings(&config_part_);
    method_ = settings.text("quant_method");
    std::string algorithm = settings.text("quant_algo");
    std::string format = settings.text("format");
    const json::object* groups = settings.object("config_groups");
    const json::object* layers = settings.object("quantized_layers");
    json::object extra;
    if ((algorithm.empty() || layers == nullptr) && files_.contains("hf_quant_config.json")) {
      MODELD_ASSIGN(const auto bytes, files_.bytes("hf_quant_config.json"));
      MODELD_ASSIGN(extra,
                    parse_python_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                      "hf_quant_config.json"));
      read_extra(extra, algorithm, format, groups, layers);
    }
    const bool all_groups = groups != nullptr && !groups->empty() && all_nvfp4(*groups);
    compressed_nvfp4_ =
        method_ == "compressed-tensors" &&
        (format == "nvfp4-pack-quantized" || (format == "mixed-precision" && all_groups));
    if (algorithm != "NVFP4" && (compressed_nvfp4_ || (layers != nullptr && any_nvfp4(*layers)))) {
      algorithm = "NVFP4";
    }
    nvfp4_ = algorithm == "NVFP4" || algorithm == "W4A16_NVFP4";
    mxfp4_ = method_ == "mxfp4";
    if (groups != nullptr) groups_ = *groups;
    format_ = settings.text("format");
    return {};
  }

  /// NVIDIA's own file beside the configuration.
  void read_extra(const json::object& extra, std::string& algorithm, std::string& format,
                  const json::object*& groups, const json::object*& layers) {
    const Settings file(&extra);
    const Settings producer(file.object("producer"));
    const Settings inner(file.object("quantization"));
    if (method_.empty()) {
      method_ = producer.text("name");
      std::transform(method_.begin(), method_.end(), method_.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      config_part_["quant_method"] = method_;
    }
    const auto over = [&inner](std::string& to, std::string_view name) {
      if (inner.find(name) != nullptr) to = inner.text(name);
    };
    over(algorithm, "quant_algo");
    over(format, "format");
    if (const json::object* found = inner.object("config_groups")) groups = found;
    if (const json::object* found = inner.object("quantized_layers")) layers = found;
  }

  static bool all_nvfp4(const json::object& groups) {
    return std::all_of(groups.begin(), groups.end(), [](const auto& member) {
      const json::object* group = member.value().if_object();
      return group == nullptr || Settings(group).text("format") == "nvfp4-pack-quantized";
    });
  }

  static bool any_nvfp4(const json::object& layers) {
    return std::any_of(layers.begin(), layers.end(), [](const auto& member) {
      const json::object* layer = member.value().if_object();
      return layer != nullptr && Settings(layer).text("quant_algo").ends_with("NVFP4");
    });
  }

  bool any_scale_left() const {
    return std::any_of(places_.begin(), places_.end(), [this](const auto& place) {
      return !removed_.contains(place.first) &&
             (place.first.ends_with(".weight_scale") || place.first.ends_with(".weight_scale_inv"));
    });
  }

  SourcePtr find(const std::string& name) const {
    const auto at = places_.find(name);
    return at == places_.end() || removed_.contains(name) ? nullptr
                                                          : weights_.tensors[at->second].tensor;
  }

  Result<SourcePtr> need(const std::string& name) const {
    if (SourcePtr found = find(name)) return found;
    return fail(Errc::malformed,
                fmt::format("reading quantized weights: tensor '{}' is missing", name));
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const NamedSource& source : weights_.tensors) {
      if (!removed_.contains(source.name)) out.push_back(source.name);
    }
    return out;
  }

  NamedSource& at(const std::string& name) { return weights_.tensors[places_.at(name)]; }

  static Error about(Error error, const std::string& name) {
    return std::move(error).context(fmt::format("reading quantized weights '{}'", name));
  }

  Result<void> replace(const std::string& name, Result<SourcePtr> value, bool fp8) {
    if (!value) return fail(about(std::move(value.error()), name));
    NamedSource& source = at(name);
    source.tensor = *std::move(value);
    source.was_fp8 = fp8;
    return {};
  }

  /// Packed names of compressed-tensors become those of ModelOpt; global scales are reciprocals.
  Result<void> rename_compressed() {
    for (const std::string& name : names()) {
      std::string base = name;
      if (take_suffix(base, ".weight_packed")) {
        move_to_end(name, base + ".weight", find(name));
      } else if (take_suffix(base, ".weight_global_scale")) {
        MODELD_TRY(move_reciprocal(name, base + ".weight_scale_2"));
      } else if (base = name; take_suffix(base, ".input_global_scale")) {
        MODELD_TRY(move_reciprocal(name, base + ".input_scale"));
      }
    }
    return {};
  }

  Result<void> move_reciprocal(const std::string& from, const std::string& to) {
    const SourcePtr old = find(from);
    std::vector<float> values(old->elements());
    MODELD_TRY(read_f32(*old, 0, values.size(), values.data()));
    for (float& value : values) {
      value = 1.0F / value;
    }
    move_to_end(from, to, owned_tensor(old->shape(), std::move(values)));
    return {};
  }

  void move_to_end(const std::string& from, const std::string& to, SourcePtr tensor) {
    if (find(to) != nullptr) return;
    removed_.insert(from);
    places_[to] = weights_.tensors.size();
    weights_.tensors.push_back({to, std::move(tensor), {}, false, false, nullptr, nullptr});
  }

  Result<void> take_nvfp4() {
    for (const std::string& name : names()) {
      std::string base = name;
      if (!take_suffix(base, ".weight")) continue;
      const SourcePtr scale = find(base + ".weight_scale");
      if (scale == nullptr || scale->shape().size() < 2) continue;
      auto blocks = nvfp4_blocks(find(name), scale);
      if (!blocks) return fail(about(std::move(blocks.error()), name));
      NamedSource source{name, *std::move(blocks), {}, false, true, nullptr, nullptr};
      source.scale2 = find(base + ".weight_scale_2");
      source.input_scale = find(base + ".input_scale");
      front_.push_back(std::move(source));
      for (const std::string_view suffix :
           {".weight", ".weight_scale", ".weight_scale_2", ".input_scale"}) {
        removed_.insert(base + std::string(suffix));
      }
    }
    for (const std::string& name : names()) {
      if (name.ends_with(".k_scale") || name.ends_with(".v_scale")) removed_.insert(name);
    }
    return {};
  }

  Result<void> by_method() {
    if (method_.empty()) {
      if (config_part_.contains("quant_method")) return unknown_method();
      return {};
    }
    if (method_ == "bitnet") return bitnet();
    if (method_ == "fp8") return fp8();
    if (method_ == "gptq") return gptq();
    if (method_ == "compressed-tensors") return compressed();
    if (method_ == "modelopt") return modelopt();
    if (mxfp4_ && config_.family->arch == "gpt-oss") return mxfp4();
    return unknown_method();
  }

  tl::unexpected<Error> unknown_method() const {
    return fail(Errc::unsupported,
                fmt::format("converting: the checkpoint is quantized by '{}', which cannot be read",
                            method_),
                "known are fp8, compressed-tensors, gptq, bitnet, modelopt (NVFP4) and, for "
                "gpt-oss, mxfp4; look for the original, unquantized repository");
  }

  Result<void> bitnet() {
    for (const std::string& name : names()) {
      std::string weight = name;
      if (!name.ends_with(".weight_scale")) continue;
      take_suffix(weight, "_scale");
      MODELD_ASSIGN(SourcePtr packed, need(weight));
      MODELD_TRY(replace(weight, bitnet_weight(std::move(packed), find(name)), false));
      removed_.insert(name);
    }
    return {};
  }

  Result<void> fp8() {
    std::vector<std::uint64_t> block;
    if (const json::value* sizes = Settings(&config_part_).find("weight_block_size");
        sizes != nullptr && sizes->is_array()) {
      for (const json::value& size : sizes->get_array()) {
        block.push_back(static_cast<std::uint64_t>(as_integer(size).value_or(0)));
      }
    }
    for (const std::string& name : names()) {
      std::string weight = name;
      if (take_suffix(weight, "_scale_inv")) {
        MODELD_TRY(scale(weight, name, block, true));
      } else if (take_suffix(weight, ".qscale_weight")) {
        MODELD_TRY(scale(weight + ".weight", name, block, true));
      } else if (name.ends_with(".activation_scale") || name.ends_with("_activation_scale") ||
                 name.ends_with(".qscale_act")) {
        removed_.insert(name);
      }
    }
    return {};
  }

  Result<void> scale(const std::string& weight, const std::string& scale_name,
                     const std::vector<std::uint64_t>& block, bool fp8) {
    MODELD_ASSIGN(SourcePtr values, need(weight));
    MODELD_TRY(replace(weight, scaled_weight(std::move(values), find(scale_name), block), fp8));
    removed_.insert(scale_name);
    return {};
  }

  Result<void> gptq() {
    const Settings settings(&config_part_);
    const std::string form = settings.text("checkpoint_format");
    const std::int64_t shift = form.empty() || form == "gptq" ? 1 : 0;
    for (const std::string& name : names()) {
      std::string base = name;
      if (!take_suffix(base, ".qweight")) continue;
      GptqParts parts;
      MODELD_ASSIGN(parts.qweight, need(name));
      MODELD_ASSIGN(parts.qzeros, need(base + ".qzeros"));
      MODELD_ASSIGN(parts.scales, need(base + ".scales"));
      MODELD_ASSIGN(parts.g_idx, need(base + ".g_idx"));
      auto value = gptq_weight(parts, settings.whole("bits", 0), shift);
      if (!value) return fail(about(std::move(value.error()), base));
      for (const std::string_view part : {".qweight", ".qzeros", ".scales", ".g_idx"}) {
        removed_.insert(base + std::string(part));
      }
      append(base + ".weight", *std::move(value));
    }
    return {};
  }

  /// A weight under a name of its own goes behind everything else.
  void append(std::string name, SourcePtr tensor) {
    added_.push_back({std::move(name), std::move(tensor), {}, false, false, nullptr, nullptr});
  }

  Result<void> compressed() {
    if (compressed_nvfp4_) return {};
    if (groups_.size() != 1) {
      return fail(Errc::unsupported,
                  fmt::format("converting: compressed-tensors with {} groups of settings; only one "
                              "can be read",
                              groups_.size()));
    }
    const Settings group(groups_.begin()->value().if_object());
    const Settings weights(group.object("weights"));
    if (format_ == "pack-quantized") return compressed_packed(weights);
    if (format_ == "float-quantized" || format_ == "int-quantized" ||
        format_ == "naive-quantized") {
      return compressed_scaled(weights);
    }
    return fail(Errc::unsupported,
                fmt::format("converting: compressed-tensors format '{}' cannot "
                            "be read",
                            format_),
                "known are float-quantized, int-quantized, naive-quantized, pack-quantized, "
                "nvfp4-pack-quantized");
  }

  Result<void> compressed_scaled(const Settings& weights) {
    const std::string strategy = weights.text("strategy");
    if ((strategy != "channel" && strategy != "block") || weights.find("group_size") != nullptr) {
      return fail(Errc::unsupported, fmt::format("converting: compressed-tensors strategy '{}' "
                                                 "cannot be read; known are channel and block",
                                                 strategy));
    }
    std::vector<std::uint64_t> block;
    if (const json::value* sizes = weights.find("block_structure");
        sizes != nullptr && sizes->is_array()) {
      for (const json::value& size : sizes->get_array()) {
        block.push_back(static_cast<std::uint64_t>(as_integer(size).value_or(0)));
      }
    }
    const bool fp8 = format_ == "float-quantized" && weights.text("type") == "float" &&
                     weights.whole("num_bits", 0) == 8;
    for (const std::string& name : names()) {
      std::string weight = name;
      if (!name.ends_with(".weight_scale")) continue;
      take_suffix(weight, "_scale");
      MODELD_TRY(scale(weight, name, block, fp8));
    }
    return {};
  }

  Result<void> compressed_packed(const Settings& weights) {
    const std::string type = weights.text("type");
    if (weights.text("strategy") != "group" || (!type.empty() && type != "int")) {
      return fail(Errc::unsupported, "converting: packed weights are read in groups of integers "
                                     "only");
    }
    for (const std::string& name : names()) {
      std::string base = name;
      if (!name.ends_with(".weight_packed")) continue;
      take_suffix(base, "_packed");
      PackedParts parts;
      MODELD_ASSIGN(parts.packed, need(name));
      MODELD_ASSIGN(parts.scale, need(base + "_scale"));
      MODELD_ASSIGN(parts.shape, need(base + "_shape"));
      parts.zero_point = find(base + "_zero_point");
      auto value =
          packed_weight(parts, weights.whole("num_bits", 0), weights.whole("group_size", 0));
      if (!value) return fail(about(std::move(value.error()), base));
      for (const std::string_view part : {"_packed", "_scale", "_shape", "_zero_point"}) {
        removed_.insert(base + std::string(part));
      }
      append(base, *std::move(value));
    }
    return {};
  }

  Result<void> modelopt() {
    for (const std::string& name : names()) {
      std::string weight = name;
      if (name.ends_with(".weight_scale")) {
        take_suffix(weight, "_scale");
        const SourcePtr values = find(weight);
        if (values == nullptr) {
          removed_.insert(name);
          continue;
        }
        const bool fp8 =
            values->type() == ElementType::f8_e4m3 || values->type() == ElementType::f8_e5m2;
        MODELD_TRY(scale(weight, name, {}, fp8));
      } else if (name.ends_with(".input_scale") || name.ends_with(".k_scale") ||
                 name.ends_with(".v_scale")) {
        removed_.insert(name);
      }
    }
    return {};
  }

  /// "X_blocks" and "X_scales" become "X_packed".
  Result<void> mxfp4() {
    for (const std::string& name : names()) {
      std::string base = name;
      if (!take_suffix(base, "_scales")) continue;
      MODELD_ASSIGN(const SourcePtr blocks, need(base + "_blocks"));
      const SourcePtr scales = find(name);
      std::vector<std::int64_t> flat;
      for (const std::uint64_t n : scales->shape()) {
        flat.push_back(static_cast<std::int64_t>(n));
      }
      if (!flat.empty()) flat.back() *= 16;
      auto weights = reshape(blocks, flat);
      if (!weights) return fail(about(std::move(weights.error()), base));
      auto packed = mxfp4_blocks(*std::move(weights), scales);
      if (!packed) return fail(about(std::move(packed.error()), base));
      front_.push_back({base + "_packed", *std::move(packed), {}, false, true, nullptr, nullptr});
      removed_.insert(name);
      removed_.insert(base + "_blocks");
    }
    return {};
  }

  void apply() {
    std::vector<NamedSource> all = std::move(front_);
    for (NamedSource& source : weights_.tensors) {
      if (!removed_.contains(source.name)) all.push_back(std::move(source));
    }
    std::move(added_.begin(), added_.end(), std::back_inserter(all));
    weights_.tensors = std::move(all);
  }

  Weights& weights_;
  const ModelConfig& config_;
  const FileSet& files_;
  std::map<std::string, std::size_t> places_;
  std::set<std::string> removed_;
  std::vector<NamedSource> front_;
  std::vector<NamedSource> added_;
  json::object config_part_;
  json::object groups_;
  std::string method_;
  std::string format_;
  bool nvfp4_ = false;
  bool compressed_nvfp4_ = false;
  bool mxfp4_ = false;
};

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
  MODELD_ASSIGN(const SourceQuantization found, Dequantizer(weights, config, files).run());
  if (!force && found.declared) MODELD_TRY(refuse_unscaled(weights));
  return found;
}

} // namespace modeld::quantize
