// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/quantization_settings.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <cctype>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// The method is NVIDIA's where only their own file beside the configuration names one.
void take_producer(const json::object& extra, QuantizationSettings& out) {
  if (!out.method.empty()) return;
  const Settings file(&extra);
  out.method = Settings(file.object("producer")).text("name");
  std::transform(out.method.begin(), out.method.end(), out.method.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  out.part["quant_method"] = out.method;
}

/// What decides whether there is NVFP4; in NVIDIA's own file it stands over the configuration.
struct Facts {
  std::string algorithm;
  std::string format;
  const json::object* groups = nullptr;
  const json::object* layers = nullptr;

  void take(const Settings& from) {
    if (from.find("quant_algo") != nullptr) algorithm = from.text("quant_algo");
    if (from.find("format") != nullptr) format = from.text("format");
    if (const json::object* found = from.object("config_groups")) groups = found;
    if (const json::object* found = from.object("quantized_layers")) layers = found;
  }
};

bool all_nvfp4(const json::object& groups) {
  return std::all_of(groups.begin(), groups.end(), [](const auto& member) {
    const json::object* group = member.value().if_object();
    return group == nullptr || Settings(group).text("format") == "nvfp4-pack-quantized";
  });
}

bool any_nvfp4(const json::object& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const auto& member) {
    const json::object* layer = member.value().if_object();
    return layer != nullptr && Settings(layer).text("quant_algo").ends_with("NVFP4");
  });
}

} // namespace

const json::value* Settings::find(std::string_view name) const {
  const json::value* value = object_ == nullptr ? nullptr : object_->if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string Settings::text(std::string_view name) const {
  const json::value* value = find(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

const json::object* Settings::object(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? nullptr : value->if_object();
}

std::int64_t Settings::whole(std::string_view name, std::int64_t fallback) const {
  const json::value* value = find(name);
  return value == nullptr ? fallback : as_integer(*value).value_or(fallback);
}

std::vector<std::uint64_t> Settings::sizes(std::string_view name) const {
  std::vector<std::uint64_t> out;
  const json::value* value = find(name);
  if (value == nullptr || !value->is_array()) return out;
  for (const json::value& size : value->get_array()) {
    out.push_back(static_cast<std::uint64_t>(as_integer(size).value_or(0)));
  }
  return out;
}

Result<QuantizationSettings> read_quantization(const ModelConfig& config, const FileSet& files) {
  constexpr const char* k_extra = "hf_quant_config.json";
  QuantizationSettings out;
  const json::value* part = config.values.if_contains("quantization_config");
  if (part != nullptr && part->is_object()) out.part = part->get_object();
  const Settings settings(&out.part);
  out.method = settings.text("quant_method");
  out.format = settings.text("format");
  const bool whole =
      !settings.text("quant_algo").empty() && settings.object("quantized_layers") != nullptr;
  json::object extra;
  if (!whole && files.contains(k_extra)) {
    MODELD_ASSIGN(const auto bytes, files.bytes(k_extra));
    MODELD_ASSIGN(extra, parse_python_json(
                             {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, k_extra));
    take_producer(extra, out);
  }
  Facts facts; // points into `out.part`, which stays as it is from here on
  facts.take(settings);
  facts.take(Settings(Settings(&extra).object("quantization")));
  const bool all_groups =
      facts.groups != nullptr && !facts.groups->empty() && all_nvfp4(*facts.groups);
  out.compressed_nvfp4 =
      out.method == "compressed-tensors" &&
      (facts.format == "nvfp4-pack-quantized" || (facts.format == "mixed-precision" && all_groups));
  const bool layers = facts.layers != nullptr && any_nvfp4(*facts.layers);
  out.nvfp4 = out.compressed_nvfp4 || layers || facts.algorithm == "NVFP4" ||
              facts.algorithm == "W4A16_NVFP4";
  out.mxfp4 = out.method == "mxfp4";
  if (facts.groups != nullptr) out.groups = *facts.groups;
  return out;
}

} // namespace modeld::quantize
