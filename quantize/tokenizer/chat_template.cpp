// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/chat_template.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace modeld::quantize {
namespace {

constexpr std::string_view k_folder = "additional_chat_templates/";
constexpr std::string_view k_extension = ".jinja";

/// Letters and digits of ASCII; anything else becomes an underscore, for each character.
std::string key_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U) continue; // the rest of a character
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    out += plain ? c : '_';
  }
  return out;
}

Result<ChatTemplate> from_list(const boost::json::array& list, std::string_view where) {
  ChatTemplate out;
  for (const auto& each : list) {
    const auto* entry = each.if_object();
    if (entry == nullptr) {
      return fail(
          Errc::malformed,
          fmt::format("reading the chat templates in '{}': an entry that is not an object", where));
    }
    const auto* name = member(*entry, "name");
    const auto* text = member(*entry, "template");
    if (name == nullptr || text == nullptr) continue;
    if (!name->is_string() || !text->is_string()) {
      return fail(
          Errc::malformed,
          fmt::format("reading the chat templates in '{}': name or template is not text", where));
    }
    out.named.emplace_back(std::string(name->get_string()), std::string(text->get_string()));
  }
  // A list without a usable entry is still a list, not a missing template; both write nothing.
  return out;
}

Result<ChatTemplate> from_value(const boost::json::value* value, std::string_view where,
                                std::vector<std::string>& warnings) {
  if (value == nullptr) return ChatTemplate{};
  if (value->is_string()) return ChatTemplate{std::string(value->get_string()), {}};
  if (const auto* list = value->if_array()) return from_list(*list, where);
  warnings.push_back(
      fmt::format("chat_template in '{}' is neither text nor a list and is left out", where));
  return ChatTemplate{};
}

Result<ChatTemplate> from_jinja(const TokenizerFiles& files) {
  MODELD_ASSIGN(auto text, files.text("chat_template.jinja"));
  ChatTemplate out;
  for (const auto& entry : files.set().entries()) {
    const std::string_view path = entry.path;
    if (!path.starts_with(k_folder) || !path.ends_with(k_extension)) continue;
    auto name = path.substr(k_folder.size());
    if (name.find('/') != std::string_view::npos) continue;
    name.remove_suffix(k_extension.size());
    MODELD_ASSIGN(auto more, files.text(path));
    out.named.emplace_back(std::string(name), std::move(more));
  }
  if (out.named.empty()) {
    out.text = std::move(text);
  } else {
    out.named.insert(out.named.begin(), {"default", std::move(text)});
  }
  return out;
}

/// tokenizer_config.json's template wins over the file's, which is what newer loaders take.
Result<void> warn_if_other(const TokenizerFiles& files, const boost::json::value& value,
                           std::vector<std::string>& warnings) {
  constexpr std::string_view k_file = "chat_template.jinja";
  if (!files.has(k_file)) return {};
  MODELD_ASSIGN(const auto text, files.text(k_file));
  if (!value.is_string() || value.get_string() != text) {
    warnings.push_back(fmt::format("the chat template of tokenizer_config.json is taken; '{}' has "
                                   "another",
                                   k_file));
  }
  return {};
}

} // namespace

void ChatTemplate::write(KvList& kv) const {
  if (text) {
    kv.set_text("tokenizer.chat_template", *text);
    return;
  }
  std::set<std::string> names;
  const std::string* standard = nullptr;
  for (const auto& [raw_name, body] : named) {
    const std::string name = key_name(raw_name);
    if (name.empty()) continue;
    if (name == "default") {
      standard = &body;
      continue;
    }
    names.insert(name);
    kv.set_text(fmt::format("tokenizer.chat_template.{}", name), body);
  }
  kv.set_array("tokenizer.chat_templates", std::vector<std::string>(names.begin(), names.end()));
  if (standard != nullptr) kv.set_text("tokenizer.chat_template", *standard);
}

Result<ChatTemplate> load_chat_template(TokenizerFiles& files,
                                        const boost::json::object& tokenizer_config,
                                        std::vector<std::string>& warnings) {
  if (const auto* value = tokenizer_config.if_contains("chat_template")) {
    MODELD_TRY(warn_if_other(files, *value, warnings));
    return from_value(value->is_null() ? nullptr : value, "tokenizer_config.json", warnings);
  }
  if (files.has("chat_template.jinja")) return from_jinja(files);
  MODELD_ASSIGN(const auto* json, files.object("chat_template.json"));
  if (json == nullptr) return ChatTemplate{};
  return from_value(member(*json, "chat_template"), "chat_template.json", warnings);
}

} // namespace modeld::quantize
