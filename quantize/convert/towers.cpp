// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/towers.hpp"

#include "quantize/convert/facts.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// The width of the text model, as the part that says so last has it.
json::value text_width(const json::object& config) {
  json::object values = config;
  if (const json::object* text = member_object(config, "text_config")) {
    for (const auto& member : *text) {
      values[member.key()] = member.value();
    }
  }
  for (const std::string_view name : {"hidden_size", "n_embd"}) {
    if (const json::value* width = values.if_contains(name)) return *width;
  }
  return nullptr;
}

} // namespace

std::string first_class(const json::object& config) {
  const json::value* classes = config.if_contains("architectures");
  if (classes == nullptr || !classes->is_array() || classes->get_array().empty()) return {};
  const json::value& first = classes->get_array()[0];
  return first.is_string() ? std::string(first.get_string()) : std::string();
}

std::string projector_class_of(const json::object& config) {
  if (const json::object* vision = member_object(config, "vision_config")) {
    if (std::string inner = first_class(*vision); !inner.empty()) return inner;
  }
  return first_class(config);
}

Result<void> name_towers(ModelConfig& config, const FileSet& files) {
  json::object& values = config.values;
  MODELD_ASSIGN(config.facts["processor"], read_processor(files));
  const json::value width = text_width(values);
  if (as_integer(width).value_or(0) <= 0) {
    return fail(Errc::malformed,
                fmt::format("converting '{}': the configuration does not say how wide the text "
                            "model is",
                            files.name()),
                "expected hidden_size or n_embd, in text_config or beside it, or dim in "
                "params.json");
  }
  const auto part = [&values](std::initializer_list<std::string_view> names) -> json::value {
    for (const std::string_view name : names) {
      if (const json::value* found = values.if_contains(name)) return *found;
    }
    return nullptr;
  };
  json::value vision = part({"vision_config"});
  json::value audio = part({"whisper_config", "audio_config"});
  values["text_width"] = width;
  const json::value& tower = truthy(vision) ? vision : audio;
  values.erase("block_count");
  values.erase("quantization_config"); // only a tower's own counts
  if (const json::object* object = tower.if_object()) {
    for (const std::string_view name :
         {"n_layers", "num_hidden_layers", "n_layer", "num_layers", "depth", "layers",
          "encoder_layers", "vt_num_hidden_layers"}) {
      const json::value* found = object->if_contains(name);
      if (found == nullptr) continue;
      values["block_count"] = *found;
      break;
    }
    if (const json::value* own = object->if_contains("quantization_config")) {
      values["quantization_config"] = *own;
    }
  }
  values["vision"] = std::move(vision);
  values["audio"] = std::move(audio);
  return {};
}

} // namespace modeld::quantize
