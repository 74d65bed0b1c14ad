// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/config.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
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

const json::object* member_object(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

std::string first_class(const json::object& config) {
  const json::value* classes = config.if_contains("architectures");
  if (classes == nullptr || !classes->is_array() || classes->get_array().empty()) return {};
  const json::value& first = classes->get_array()[0];
  return first.is_string() ? std::string(first.get_string()) : std::string();
}

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

/// What the configuration class adds; nothing where the class is unknown.
Result<void> complete(json::object& config, const ArchitectureSet& architectures) {
  const auto* defaults = architectures.defaults(model_type_of(config));
  if (defaults == nullptr) return {};
  for (auto& member : config) {
    if (json::object* part = member.value().if_object()) {
      const auto* inner = architectures.defaults(model_type_of(*part));
      if (inner == nullptr) continue;
      MODELD_TRY(apply(*inner, *part));
      MODELD_TRY(apply(architectures.standard().defaults, *part));
    }
  }
  MODELD_TRY(complete_parts(config, architectures));
  MODELD_TRY(apply(*defaults, config));
  return apply(architectures.standard().defaults, config);
}

void name_text_part(json::object& config) {
  for (const std::string_view name : k_text_parts) {
    const json::object* part = member_object(config, name);
    if (part == nullptr) continue;
    if (name == "thinker_config") part = member_object(*part, "text_config");
    if (part != nullptr) config["text_config"] = json::object(*part);
  }
}

/// The class that decides the family of a projector: the vision tower's own where it has one.
std::string projector_class_of(const json::object& config) {
  if (const json::object* vision = member_object(config, "vision_config")) {
    if (std::string inner = first_class(*vision); !inner.empty()) return inner;
  }
  return first_class(config);
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
    json::object values = config.values;
    if (const json::object* text = member_object(config.values, "text_config")) {
      for (const auto& member : *text) {
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

Result<json::object> read_json(const FileSet& files, std::string_view path) {
  MODELD_ASSIGN(const auto bytes, files.bytes(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_python_json(text, path);
}

/// Pooling of sentence-transformers, as GGUF numbers it; null where there is none.
Result<json::value> pooling_type(const FileSet& files, const json::array& modules) {
  for (const json::value& module : modules) {
    const json::object* one = module.if_object();
    if (one == nullptr) continue;
    const json::value* type = one->if_contains("type");
    const json::value* path = one->if_contains("path");
    if (type == nullptr || path == nullptr || !type->is_string() || !path->is_string()) continue;
    if (!std::string_view(type->get_string()).ends_with("Pooling")) continue;
    const std::string file = std::string(path->get_string()) + "/config.json";
    MODELD_ASSIGN(const json::object pooling, read_json(files, file));
    const auto on = [&pooling](std::string_view name) {
      const json::value* value = pooling.if_contains(name);
      return value != nullptr && truthy(*value);
    };
    const json::value* mode = pooling.if_contains("pooling_mode");
    const auto named = [mode](std::string_view name) {
      return mode != nullptr && mode->is_string() && std::string_view(mode->get_string()) == name;
    };
    if (on("pooling_mode_mean_tokens")) return json::value(1);
    if (on("pooling_mode_cls_token")) return json::value(2);
    if (on("pooling_mode_lasttoken")) return json::value(3);
    if (named("mean")) return json::value(1);
    if (named("cls")) return json::value(2);
    if (named("lasttoken")) return json::value(3);
    return fail(Errc::unsupported,
                fmt::format("reading '{}': only mean, cls and last-token pooling are known", file));
  }
  return json::value(nullptr);
}

/// Numbers of added tokens by text: tokenizer_config.json's word goes before tokenizer.json's.
json::object added_tokens(const json::object& facts, const FileSet& files) {
  json::object out;
  const json::object* config = member_object(facts, "tokenizer_config");
  const json::object* decoder =
      config == nullptr ? nullptr : member_object(*config, "added_tokens_decoder");
  const auto add = [&out](const json::value& content, std::optional<std::int64_t> id) {
    if (content.is_string() && id) out.emplace(content.get_string(), *id);
  };
  if (decoder != nullptr) {
    for (const auto& member : *decoder) {
      std::int64_t id = 0;
      const std::string_view digits = member.key();
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), id);
      const json::object* token = member.value().if_object();
      if (read.ec != std::errc() || token == nullptr || !token->contains("content")) continue;
      add(token->at("content"), id);
    }
  }
  if (!files.contains("tokenizer.json")) return out;
  const auto file = read_json(files, "tokenizer.json");
  const json::value* added = file ? file->if_contains("added_tokens") : nullptr;
  if (added == nullptr || !added->is_array()) return out;
  for (const json::value& item : added->get_array()) {
    const json::object* token = item.if_object();
    if (token == nullptr || !token->contains("content") || !token->contains("id")) continue;
    add(token->at("content"), as_integer(token->at("id")));
  }
  return out;
}

Result<void> collect_facts(const FileSet& files, ModelConfig& config) {
  json::object& facts = config.facts;
  facts["class"] = config.class_name;
  facts["repository"] = std::string(files.name());
  facts["raw"] = config.raw;
  json::array names;
  for (const FileSet::Entry& entry : files.entries()) {
    if (entry.path.find('/') == std::string::npos) names.emplace_back(entry.path);
  }
  facts["files"] = std::move(names);
  // A file that is malformed is the tokenizer's to report.
  for (const std::string_view file : {"tokenizer_config", "generation_config"}) {
    const std::string path = std::string(file) + ".json";
    auto content = files.contains(path) ? read_json(files, path) : Result<json::object>();
    facts[file] = content ? json::value(*std::move(content)) : json::value(json::object());
  }
  if (!files.contains("modules.json")) return {};
  MODELD_ASSIGN(const auto bytes, files.bytes("modules.json"));
  MODELD_ASSIGN(
      json::value modules,
      parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "modules.json"));
  if (!modules.is_array()) return {};
  MODELD_ASSIGN(facts["pooling_type"], pooling_type(files, modules.get_array()));
  facts["modules"] = std::move(modules);
  return {};
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

/// preprocessor_config.json, and processor_config.json over it; both may have the part that matters
/// in a member.
Result<json::object> read_processor(const FileSet& files) {
  json::object out;
  for (const auto& [file, part] : {std::pair{"preprocessor_config.json", "media_proc_cfg"},
                                   std::pair{"processor_config.json", "image_processor"}}) {
    if (!files.contains(file)) continue;
    MODELD_ASSIGN(json::object content, read_json(files, file));
    if (const json::object* inner = member_object(content, part)) {
      for (const auto& member : json::object(*inner)) {
        content[member.key()] = member.value();
      }
    }
    for (const auto& member : content) {
      out[member.key()] = member.value();
    }
  }
  return out;
}

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

/// The towers, by the names that families use for them.
Result<void> name_towers(ModelConfig& config, const FileSet& files) {
  json::object& values = config.values;
  MODELD_ASSIGN(config.facts["processor"], read_processor(files));
  const json::value width = text_width(values);
  if (as_integer(width).value_or(0) <= 0) {
    return fail(Errc::malformed,
                fmt::format("converting '{}': config.json does not say how wide the text model is",
                            files.name()),
                "expected hidden_size or n_embd, in text_config or beside it");
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

} // namespace

const json::value* ConfigScope::find(std::string_view name) const {
  if (const auto at = locals_.find(name); at != locals_.end()) return &at->second;
  if (facts_ != nullptr) {
    if (const json::value* fact = facts_->if_contains(name)) return fact;
  }
  if (const json::value* value = values_->if_contains(name)) return value;
  return files_ == nullptr ? nullptr : find_large(name);
}

const json::value* ConfigScope::find_large(std::string_view name) const {
  const auto keep = [&](json::value value) {
    return &locals_.insert_or_assign(std::string(name), std::move(value)).first->second;
  };
  if (name == "readme" && files_->contains("README.md")) {
    const auto bytes = files_->bytes("README.md");
    if (!bytes) return nullptr;
    return keep(
        json::value(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size())));
  }
  if (name == "added_tokens") return keep(added_tokens(*facts_, *files_));
  const bool vocabulary = name == "tokenizer_vocab";
  if ((!vocabulary && name != "tokenizer_json_tokens") || !files_->contains("tokenizer.json")) {
    return nullptr;
  }
  const auto file = read_json(*files_, "tokenizer.json");
  if (!file) return nullptr;
  const json::object* model = member_object(*file, "model");
  const json::object* vocab = model == nullptr ? nullptr : member_object(*model, "vocab");
  if (vocabulary) return keep(vocab == nullptr ? json::value(nullptr) : json::value(*vocab));
  std::int64_t count = vocab == nullptr ? 0 : static_cast<std::int64_t>(vocab->size());
  const json::value* added = file->if_contains("added_tokens");
  if (added != nullptr && added->is_array()) {
    count += static_cast<std::int64_t>(added->get_array().size());
  }
  return keep(json::value(count));
}

void ConfigScope::set(std::string name, json::value value) {
  locals_.insert_or_assign(std::move(name), std::move(value));
}

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

Result<ModelConfig> load_config(const FileSet& files, const ArchitectureSet& architectures,
                                FamilyKind kind, json::object facts) {
  if (!files.contains("config.json")) {
    return fail(Errc::not_found,
                fmt::format("converting '{}': there is no config.json", files.name()),
                "this is no checkpoint of the Hugging Face form; give the folder that holds "
                "config.json");
  }
  ModelConfig config;
  MODELD_ASSIGN(config.raw, read_json(files, "config.json"));

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
  config.facts = std::move(facts);
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
