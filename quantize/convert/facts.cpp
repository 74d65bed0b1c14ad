// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/facts.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

namespace json = boost::json;

namespace modeld::quantize {
namespace {

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
    MODELD_ASSIGN(const json::object pooling, read_json_file(files, file));
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

/// Where GGUF puts a dense layer of sentence-transformers.
std::string_view dense_place(std::string_view path) {
  return path == "2_Dense" ? "dense_2" : "dense_3";
}

/// Dense layers by their place in GGUF: their configurations, and `path`.
Result<json::object> dense_modules(const FileSet& files, const json::array& modules) {
  json::object out;
  for (const json::value& module : modules) {
    const json::object* one = module.if_object();
    const json::value* type = one == nullptr ? nullptr : one->if_contains("type");
    const json::value* where = one == nullptr ? nullptr : one->if_contains("path");
    if (type == nullptr || where == nullptr || !type->is_string() || !where->is_string()) continue;
    if (!std::string_view(type->get_string()).ends_with("Dense")) continue;
    const std::string path(where->get_string());
    if (!files.contains(path + "/model.safetensors")) continue;
    json::object layer;
    const std::string config = path + "/config.json";
    if (files.contains(config)) {
      MODELD_ASSIGN(layer, read_json_file(files, config));
    }
    layer["path"] = path;
    const std::string_view place = dense_place(path);
    if (out.contains(place)) {
      return fail(
          Errc::conflict,
          fmt::format("reading 'modules.json': two dense modules become '{}': '{}' and '{}'", place,
                      std::string_view(out[place].at("path").as_string()), path));
    }
    out[place] = std::move(layer);
  }
  return out;
}

} // namespace

const json::object* member_object(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

Result<json::object> read_json_file(const FileSet& files, std::string_view path) {
  MODELD_ASSIGN(const auto bytes, files.bytes(path));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_python_json(text, path);
}

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
  const auto file = read_json_file(files, "tokenizer.json");
  const json::value* added = file ? file->if_contains("added_tokens") : nullptr;
  if (added == nullptr || !added->is_array()) return out;
  for (const json::value& item : added->get_array()) {
    const json::object* token = item.if_object();
    if (token == nullptr || !token->contains("content") || !token->contains("id")) continue;
    add(token->at("content"), as_integer(token->at("id")));
  }
  return out;
}

json::object tekken_special(const FileSet& files) {
  json::object out;
  if (!files.contains("tekken.json")) return out;
  const auto file = read_json_file(files, "tekken.json");
  const json::value* special = file ? file->if_contains("special_tokens") : nullptr;
  if (special == nullptr || !special->is_array()) return out;
  for (const json::value& item : special->get_array()) {
    const json::object* token = item.if_object();
    if (token == nullptr) continue;
    const json::value* text = token->if_contains("token_str");
    const json::value* rank = token->if_contains("rank");
    if (text == nullptr || rank == nullptr || !text->is_string() || !as_integer(*rank)) continue;
    out.emplace(text->get_string(), *as_integer(*rank));
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
    auto content = files.contains(path) ? read_json_file(files, path) : Result<json::object>();
    facts[file] = content ? json::value(*std::move(content)) : json::value(json::object());
  }
  if (!files.contains("modules.json")) return {};
  MODELD_ASSIGN(const auto bytes, files.bytes("modules.json"));
  MODELD_ASSIGN(
      json::value modules,
      parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "modules.json"));
  if (!modules.is_array()) return {};
  MODELD_ASSIGN(facts["pooling_type"], pooling_type(files, modules.get_array()));
  if (const json::value* wanted = facts.if_contains("dense_modules"); wanted && truthy(*wanted)) {
    MODELD_ASSIGN(facts["dense"], dense_modules(files, modules.get_array()));
  }
  facts["modules"] = std::move(modules);
  return {};
}

Result<json::object> read_processor(const FileSet& files) {
  json::object out;
  for (const auto& [file, part] : {std::pair{"preprocessor_config.json", "media_proc_cfg"},
                                   std::pair{"processor_config.json", "image_processor"}}) {
    if (!files.contains(file)) continue;
    MODELD_ASSIGN(json::object content, read_json_file(files, file));
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

} // namespace modeld::quantize
