// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/config.hpp"

#include "quantize/convert/facts.hpp"
#include "quantize/convert/towers.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

/// Parts that hold the text model's configuration, by the names that families use for it.
constexpr std::array<std::string_view, 5> k_text_parts{"llm_config", "lm_config", "thinker_config",
                                                       "language_config", "lfm"};

/// Classes whose text part names another class that is not meant.
constexpr std::array<std::string_view, 5> k_top_class_wins{
    "StepVLForConditionalGeneration", "Sarashina2VisionForCausalLM",
    "Exaone4_5_ForConditionalGeneration", "Step3p7ForConditionalGeneration",
    "KimiK3ForConditionalGeneration"};

std::string model_type_of(const json::object& config) {
  const json::value* type = config.if_contains("model_type");
  return type != nullptr && type->is_string() ? std::string(type->get_string()) : std::string();
}

/// A default that is an expression also fills in for null.
Result<void> apply(const std::vector<Assignment>& defaults, json::object& config) {
  for (const Assignment& one : defaults) {
    const json::value* there = config.if_contains(one.name);
    const bool computed = !one.value.names().empty();
    if (there != nullptr && !(computed && there->is_null())) continue;
    const ConfigScope scope(config);
    MODELD_ASSIGN(json::value value, one.value.evaluate(scope));
    config[one.name] = std::move(value);
  }
  return {};
}

/// The object at a path of members, made where there is none; null where something else is there.
json::object* object_at(json::object& root, std::string_view path, char divider) {
  json::object* at = &root;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(divider), path.size());
    json::value& member = (*at)[path.substr(0, end)];
    if (member.is_null()) member = json::object();
    at = member.if_object();
    if (at == nullptr) return nullptr;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return at;
}

/// Parts whose class follows from the whole's, whatever they say themselves.
Result<void> complete_parts(json::object& config, const ArchitectureSet& architectures) {
  for (const auto& [path, defaults] : architectures.part_defaults(model_type_of(config))) {
    json::object* part = object_at(config, path, '/');
    if (part == nullptr) continue;
    MODELD_TRY(apply(*defaults, *part));
  }
  return {};
}

/// Whether a class would refuse its configuration: the reference then reads the file as it is.
bool refused(const json::object& config, const StandardRules& standard) {
  const auto& checking = standard.layer_types_checked;
  const std::string type = model_type_of(config);
  if (std::find(checking.begin(), checking.end(), type) == checking.end()) return false;
  const json::value* types = config.if_contains("layer_types");
  const json::value* layers = config.if_contains("num_hidden_layers");
  if (types == nullptr || !types->is_array() || layers == nullptr) return false;
  const auto count = as_integer(*layers);
  return count && *count != static_cast<std::int64_t>(types->get_array().size());
}

/// What the configuration class adds; nothing where the class is unknown or refuses.
Result<void> complete(json::object& config, const ArchitectureSet& architectures) {
  const auto* defaults = architectures.defaults(model_type_of(config));
  if (defaults == nullptr) return {};
  const StandardRules& standard = architectures.standard();
  json::object full = config;
  MODELD_TRY(complete_parts(full, architectures));
  for (auto& member : full) {
    if (json::object* part = member.value().if_object()) {
      const auto* inner = architectures.defaults(model_type_of(*part));
      if (inner == nullptr) continue;
      MODELD_TRY(apply(*inner, *part));
      MODELD_TRY(apply(standard.defaults, *part));
      if (refused(*part, standard)) return {};
    }
  }
  MODELD_TRY(apply(*defaults, full));
  MODELD_TRY(apply(standard.defaults, full));
  if (!refused(full, standard)) config = std::move(full);
  return {};
}

void name_text_part(json::object& config) {
  for (const std::string_view name : k_text_parts) {
    const json::object* part = member_object(config, name);
    if (part == nullptr) continue;
    if (name == "thinker_config") part = member_object(*part, "text_config");
    if (part != nullptr) config["text_config"] = json::object(*part);
  }
}

/// The class that decides the family.
std::string class_of(const json::object& config) {
  std::string name = first_class(config);
  if (name.empty()) {
    // Checkpoints of the original Mamba form name no class.
    const json::object* ssm = member_object(config, "ssm_cfg");
    if (ssm != nullptr) {
      const json::value* layer = ssm->if_contains("layer");
      const bool named = layer != nullptr && layer->is_string();
      name = (named ? std::string(layer->get_string()) : std::string("Mamba")) + "ForCausalLM";
    }
  }
  if (std::find(k_top_class_wins.begin(), k_top_class_wins.end(), name) != k_top_class_wins.end()) {
    return name;
  }
  if (const json::object* text = member_object(config, "text_config")) {
    if (std::string inner = first_class(*text); !inner.empty()) return inner;
  }
  return name;
}

/// rope_theta and its like belong to rope_parameters, unless that tells layer kinds apart.
void gather_rope(json::object& config) {
  const ConfigScope scope(config);
  const auto first = [&scope](std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (const json::value* found = scope.find(name)) return *found;
    }
    return json::value(nullptr);
  };
  const json::value* given = config.if_contains("rope_parameters");
  if (given == nullptr) given = config.if_contains("rope_scaling");
  json::object rope;
  if (given != nullptr && given->is_object()) rope = given->get_object();
  if (!rope.contains("full_attention") && !rope.contains("sliding_attention")) {
    const json::value local = first({"local_rope_theta", "rope_local_theta", "rope_theta_local",
                                     "swa_rope_theta", "rope_local_base_freq"});
    if (!local.is_null()) rope["sliding_attention"] = json::object{{"rope_theta", local}};
    // By value: a member of `rope` itself would move when a new one comes in.
    const auto mirror = [&rope](std::string_view name, json::value value) {
      if (!rope.contains(name) && !value.is_null()) rope[name] = std::move(value);
    };
    mirror("rope_theta", first({"global_rope_theta", "rope_global_theta", "rope_theta_global",
                                "rope_theta", "rotary_emb_base"}));
    if (const json::value* type = rope.if_contains("type")) mirror("rope_type", *type);
    mirror("partial_rotary_factor", first({"partial_rotary_factor", "rope_pct", "rope_percent"}));
    mirror("original_max_position_embeddings", first({"original_max_position_embeddings"}));
  }
  // One base for each kind of layer, written as a list (Step 3.5).
  if (const json::value* theta = rope.if_contains("rope_theta");
      theta != nullptr && theta->is_array() && theta->get_array().size() >= 2) {
    const json::array bases = theta->get_array();
    rope["rope_theta"] = bases[0];
    rope["sliding_attention"] = json::object{{"rope_theta", bases[1]}};
  }
  config["rope_parameters"] = std::move(rope);
}

Result<const Architecture*> choose(const ArchitectureSet& architectures, const ModelConfig& config,
                                   const FileSet& files, FamilyKind kind) {
  for (const Architecture* one : architectures.find(config.class_name, kind)) {
    if (!one->when) return one;
    // A condition sees the text part as if it stood at the root already.
    json::object values = one->raw_config ? config.raw : config.values;
    name_text_part(values);
    if (const json::object* part = member_object(values, "text_config")) {
      const json::object text = *part;
      for (const auto& member : text) {
        values[member.key()] = member.value();
      }
    }
    ModelConfig flat;
    flat.values = std::move(values);
    flat.facts = config.facts;
    MODELD_ASSIGN(const json::value holds, one->when->evaluate(ConfigScope(flat)));
    if (truthy(holds)) return one;
  }
  return fail(Errc::unsupported,
              fmt::format("converting '{}': {} '{}' is not supported", files.name(),
                          kind == FamilyKind::model ? "architecture" : "the projector of",
                          config.class_name),
              fmt::format("most alike of those supported: {}; 'modelctl convert --list' shows all",
                          fmt::join(architectures.nearby(config.class_name, kind), ", ")));
}

/// Moves the text part to the root.
Result<void> flatten(ModelConfig& config) {
  if (const json::object* text = member_object(config.values, "text_config")) {
    const json::object inner = *text;
    for (const auto& member : inner) {
      config.values[member.key()] = member.value();
    }
  }
  const ConfigScope scope(config.values);
  for (const std::string_view name : {"n_layers", "num_hidden_layers", "n_layer", "num_layers"}) {
    const json::value* found = scope.find(name);
    if (found == nullptr) continue;
    config.values["block_count"] = json::value(*found);
    break;
  }
  gather_rope(config.values);
  return {};
}

} // namespace

namespace {

/// Infinity and NaN outside of strings become null.
std::string without_python_words(std::string_view text) {
  std::string plain;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      plain += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (text.substr(i, word.size()) != word) continue;
        plain += "null";
        i += word.size();
        break;
      }
      if (i >= text.size()) break;
    }
    plain += text[i];
  }
  return plain;
}

} // namespace

Result<json::object> parse_python_json(std::string_view text, std::string_view what) {
  auto value = parse_json(text, what);
  if (!value) value = parse_json(without_python_words(text), what);
  if (!value) return fail(std::move(value.error()));
  if (!value->is_object()) {
    return fail(Errc::malformed, fmt::format("parsing {}: it is no object", what));
  }
  return std::move(value->get_object());
}

namespace {

Result<void> read_config(const FileSet& files, const ArchitectureSet& architectures,
                         FamilyKind kind, ModelConfig& config) {
  if (!files.contains("config.json")) {
    const bool params = files.contains("params.json");
    return fail(Errc::not_found,
                fmt::format("converting '{}': there is no config.json", files.name()),
                params ? "params.json is there: for Mistral's own form pass --mistral-format"
                       : "this is no checkpoint of the Hugging Face form; give the folder that "
                         "holds config.json");
  }
  MODELD_ASSIGN(config.raw, read_json_file(files, "config.json"));
  config.values = config.raw;
  MODELD_TRY(complete(config.values, architectures));
  name_text_part(config.values);
  config.class_name =
      kind == FamilyKind::projector ? projector_class_of(config.values) : class_of(config.values);
  if (config.class_name.empty()) {
    return fail(Errc::malformed,
                fmt::format("converting '{}': config.json names no architecture", files.name()),
                "add \"architectures\": [\"...\"] with the class of the model");
  }
  return {};
}

/// Mistral's own form: one file says everything, and no class.
Result<void> read_params(const FileSet& files, FamilyKind kind, ModelConfig& config) {
  if (!files.contains("params.json")) {
    return fail(Errc::not_found,
                fmt::format("converting '{}': there is no params.json", files.name()),
                "this is no checkpoint of Mistral's own form; leave --mistral-format out");
  }
  MODELD_ASSIGN(config.raw, read_json_file(files, "params.json"));
  config.values = config.raw;
  const auto there = [&config](std::string_view name) {
    const json::value* value = config.raw.if_contains(name);
    return value != nullptr && !value->is_null();
  };
  if (kind == FamilyKind::projector) {
    if (!there("vision_encoder")) {
      return fail(Errc::unsupported,
                  fmt::format("converting '{}': params.json has no vision_encoder", files.name()));
    }
    config.class_name = k_params_vision_class;
    config.values["hidden_size"] = config.raw.contains("dim") ? config.raw.at("dim") : nullptr;
    config.values["vision_config"] = config.raw.at("vision_encoder");
    return {};
  }
  config.class_name = there("moe") ? k_params_moe_class : k_params_class;
  if (!there("quantization")) return {};
  const json::object* quantization = member_object(config.raw, "quantization");
  const json::value* format =
      quantization == nullptr ? nullptr : quantization->if_contains("qformat_weight");
  if (format == nullptr || *format != json::value("fp8_e4m3")) {
    return fail(Errc::unsupported,
                fmt::format("converting '{}': quantization of params.json is {}, known is "
                            "qformat_weight \"fp8_e4m3\"",
                            files.name(), json::serialize(config.raw.at("quantization"))));
  }
  config.values["quantization_config"] = json::object{
      {"activation_scheme", "static"}, {"quant_method", "fp8"}, {"weight_block_size", nullptr}};
  return {};
}

} // namespace

Result<ModelConfig> load_config(const FileSet& files, const ArchitectureSet& architectures,
                                FamilyKind kind, json::object facts) {
  ModelConfig config;
  config.facts = std::move(facts);
  const json::value* mistral = config.facts.if_contains("mistral_format");
  if (mistral != nullptr && truthy(*mistral)) {
    MODELD_TRY(read_params(files, kind, config));
  } else {
    MODELD_TRY(read_config(files, architectures, kind, config));
  }
  MODELD_TRY(collect_facts(files, config));
  MODELD_ASSIGN(config.family, choose(architectures, config, files, kind));
  if (config.family->raw_config) {
    config.values = config.raw;
    name_text_part(config.values);
  }
  if (kind == FamilyKind::projector) {
    MODELD_TRY(name_towers(config, files));
  } else {
    MODELD_TRY(flatten(config));
  }
  return config;
}

Result<void> assign(json::object& values, std::string_view name, json::value value) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    values[name] = std::move(value);
    return {};
  }
  json::object* part = object_at(values, name.substr(0, dot), '.');
  if (part == nullptr) {
    return fail(Errc::malformed, fmt::format("setting '{}': '{}' of config.json is no object", name,
                                             name.substr(0, dot)));
  }
  (*part)[name.substr(dot + 1)] = std::move(value);
  return {};
}

Result<void> prepare_config(ModelConfig& config, const FileSet& files) {
  for (const Assignment& one : config.family->prepare) {
    const ConfigScope scope(config, &files);
    MODELD_ASSIGN(json::value value, one.value.evaluate(scope));
    MODELD_TRY(assign(config.values, one.name, std::move(value)));
  }
  const json::value* blocks = config.values.if_contains("block_count");
  if (blocks == nullptr || !as_integer(*blocks)) {
    return fail(
        Errc::malformed,
        fmt::format("converting '{}': config.json has no whole number of layers", files.name()),
        "expected one of n_layers, num_hidden_layers, n_layer, num_layers");
  }
  return {};
}

} // namespace modeld::quantize
