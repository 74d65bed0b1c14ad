// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/hf_tokenizer_loader.hpp"

#include "quantize/tokenizer/hf_old_files.hpp"
#include "schema/embedded_file.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace modeld::quantize {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::array<std::string_view, 7> k_roles{"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
constexpr std::string_view k_additional = "additional_special_tokens";

const object& class_table() {
  static const value k_table = [] {
    for (const auto& file : tokenizers::files()) {
      if (file.name == "tokenizer_classes.json") return boost::json::parse(file.text);
    }
    return value(object{{"classes", object{}}, {"model_types", object{}}});
  }();
  return k_table.get_object();
}

const object* class_row(std::string_view name) {
  const auto* row = class_table().at("classes").as_object().if_contains(name);
  return row == nullptr ? nullptr : row->if_object();
}

} // namespace

const value* HfTokenizerLoader::setting(std::string_view name) const {
  return settings_ == nullptr ? nullptr : settings_->if_contains(name);
}

bool HfTokenizerLoader::flag(std::string_view name, bool otherwise) const {
  const auto* found = setting(name);
  return found == nullptr ? otherwise : is_truthy(found);
}

Result<HfTokenizer> HfTokenizerLoader::run() {
  MODELD_ASSIGN(settings_, files_.object("tokenizer_config.json"));
  MODELD_TRY(find_class());
  MODELD_TRY(read_definition());
  MODELD_TRY(read_decoder_tokens());
  MODELD_TRY(read_special_tokens());
  add_tokens();
  change_prefix_space();
  MODELD_TRY(change_template());
  change_bert_normalizer();
  change_mistral_regex();
  out_.clean_up_ = flag("clean_up_tokenization_spaces", false);
  return std::move(out_);
}

/// tokenizer_config.json's tokenizer_class, else config.json's, else by the model type. "XFast" is
/// taken where it exists.
Result<void> HfTokenizerLoader::find_class() {
  MODELD_ASSIGN(const auto* config, files_.object("config.json"));
  std::string name;
  if (settings_ != nullptr) name = text_member(*settings_, "tokenizer_class").value_or("");
  if (name.empty() && config != nullptr) {
    MODELD_ASSIGN(const auto by_type, class_of_model_type());
    name = text_member(*config, "tokenizer_class").value_or(by_type);
  }
  const std::string fast = name.ends_with("Fast") ? name : name + "Fast";
  class_ = class_row(fast);
  if (class_ == nullptr) {
    return fail(Errc::unsupported,
                fmt::format("reading the tokenizer: the class '{}' is not known", name),
                "set tokenizer_class in tokenizer_config.json to PreTrainedTokenizerFast if "
                "tokenizer.json says all");
  }
  out_.class_name_ = fast;
  return {};
}

Result<std::string> HfTokenizerLoader::class_of_model_type() const {
  MODELD_ASSIGN(const auto* config, files_.object("config.json"));
  const auto type = text_member(*config, "model_type").value_or("");
  const auto* found = class_table().at("model_types").as_object().if_contains(type);
  if (found != nullptr) return std::string(found->as_string());
  return fail(Errc::unsupported,
              fmt::format("reading the tokenizer: nothing names its class, and the model type '{}' "
                          "is not known",
                          type),
              "add tokenizer_config.json with a tokenizer_class");
}

Result<void> HfTokenizerLoader::read_definition() {
  MODELD_ASSIGN(const auto* tokenizer, files_.object("tokenizer.json"));
  const auto* prefix = setting("add_prefix_space");
  const bool rebuilt =
      class_->contains("rebuilt_for_prefix_space") && prefix != nullptr && !prefix->is_null();
  if (tokenizer != nullptr && !rebuilt) return out_.read_definition(*tokenizer);
  const auto kind = text_member(*class_, "files").value_or("");
  if (kind == "bpe" && files_.has("vocab.json") && files_.has("merges.txt")) {
    return read_byte_level_files();
  }
  if (kind == "wordpiece" && files_.has("vocab.txt")) return read_wordpiece_files();
  if (rebuilt) {
    return fail(Errc::unsupported,
                fmt::format("reading the tokenizer: add_prefix_space makes {} build itself from "
                            "tokenizer.model",
                            out_.class_name_),
                "remove add_prefix_space from tokenizer_config.json");
  }
  const std::string_view half = files_.has("vocab.json") ? "vocab.json is there, merges.txt is not"
                                : files_.has("merges.txt")
                                    ? "merges.txt is there, vocab.json is not"
                                    : "nor are there older files of it";
  return fail(Errc::not_found,
              fmt::format("reading the tokenizer: there is no tokenizer.json for {}, and {}",
                          out_.class_name_, half),
              "the repository must hold its tokenizer; many keep it with the base model only");
}

Result<void> HfTokenizerLoader::read_byte_level_files() {
  MODELD_ASSIGN(auto built, byte_level_definition(files_, out_.class_name_, settings_));
  out_.own_model_ = std::make_shared<object>(std::move(built));
  return out_.read_definition(*out_.own_model_);
}

Result<void> HfTokenizerLoader::read_wordpiece_files() {
  MODELD_ASSIGN(auto built, wordpiece_definition(files_, settings_));
  out_.own_model_ = std::make_shared<object>(std::move(built));
  return out_.read_definition(*out_.own_model_);
}

Result<void> HfTokenizerLoader::read_decoder_tokens() {
  const auto* found = setting("added_tokens_decoder");
  if (found == nullptr) return read_legacy_tokens();
  const auto* entries = found->if_object();
  if (entries == nullptr) {
    return fail(Errc::malformed,
                "reading 'tokenizer_config.json': added_tokens_decoder is not an object");
  }
  for (const auto& [key, entry] : *entries) {
    std::uint64_t id = 0;
    const std::string_view digits = key;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (error != std::errc{} || end != digits.data() + digits.size() || !entry.is_object()) {
      return fail(Errc::malformed,
                  fmt::format("reading 'tokenizer_config.json': added_tokens_decoder's entry '{}'",
                              digits));
    }
    MODELD_ASSIGN(auto token, AddedToken::parse(entry.get_object(), "tokenizer_config.json"));
    decoder_tokens_.insert_or_assign(id, std::move(token));
  }
  return {};
}

/// Before added_tokens_decoder: special_tokens_map.json, added_tokens.json, and tokenizer.json's
/// own list.
Result<void> HfTokenizerLoader::read_legacy_tokens() {
  MODELD_ASSIGN(const auto* map, files_.object("special_tokens_map.json"));
  if (map != nullptr) {
    for (const auto& [key, entry] : *map) {
      value copy = entry;
      if (auto* flags = copy.if_object()) (*flags)["special"] = true;
      special_map_[std::string(key)] = std::move(copy);
    }
  }
  MODELD_ASSIGN(const auto* added, files_.object("added_tokens.json"));
  if (added != nullptr) {
    for (const auto& entry : *added) {
      const std::string_view text = entry.key();
      const auto number = whole_number(&entry.value());
      if (!number || *number < 0) continue;
      const bool special = std::any_of(k_roles.begin(), k_roles.end(), [&](std::string_view role) {
        const auto key = fmt::format("{}_token", role);
        const auto at = special_map_.find(key);
        const value* named = at != special_map_.end() ? &at->second : setting(key);
        return named != nullptr && named->is_string() && named->get_string() == text;
      });
      decoder_tokens_[static_cast<std::uint64_t>(*number)] =
          AddedToken{std::string(text), special, !special};
    }
  }
  MODELD_ASSIGN(const auto* tokenizer, files_.object("tokenizer.json"));
  const auto* list = tokenizer == nullptr ? nullptr : tokenizer->if_contains("added_tokens");
  if (list == nullptr || !list->is_array()) return {};
  for (const auto& each : list->get_array()) {
    const auto* entry = each.if_object();
    const auto id = entry == nullptr ? std::nullopt : whole_number(entry->if_contains("id"));
    if (!id || *id < 0) continue;
    MODELD_ASSIGN(auto token, AddedToken::parse(*entry, "tokenizer.json"));
    decoder_tokens_[static_cast<std::uint64_t>(*id)] = std::move(token);
  }
  return {};
}

Result<void> HfTokenizerLoader::read_special_tokens() {
  const auto& defaults = class_->at("special").as_object();
  const auto configured = [&](const std::string& key) -> const value* {
    if (const auto at = special_map_.find(key); at != special_map_.end()) return &at->second;
    return setting(key);
  };
  for (const auto role : k_roles) {
    const value* given = configured(fmt::format("{}_token", role));
    if (given == nullptr) given = defaults.if_contains(role);
    if (is_truthy(given)) MODELD_TRY(add_special(role, *given));
  }
  const value* more = configured(std::string(k_additional));
  if (more == nullptr) more = defaults.if_contains(k_additional);
  if (more != nullptr) MODELD_TRY(add_special_list(*more));
  if (const auto* extra = setting("extra_special_tokens"); extra != nullptr && extra->is_object()) {
    for (const auto& [name, token] : extra->get_object()) {
      if (is_truthy(&token)) MODELD_TRY(add_special(name, token));
    }
  }
  return {};
}

Result<void> HfTokenizerLoader::add_special_list(const value& list) {
  if (list.is_null()) return {};
  if (!list.is_array()) {
    return fail(Errc::malformed,
                fmt::format("reading 'tokenizer_config.json': {} is not a list", k_additional));
  }
  for (const auto& each : list.get_array()) {
    MODELD_TRY(add_special(k_additional, each));
  }
  return {};
}

Result<void> HfTokenizerLoader::add_special(std::string_view role, const value& given) {
  Special special;
  special.role = role;
  if (const auto* entry = given.if_object()) {
    MODELD_ASSIGN(special.token, AddedToken::parse(*entry, "tokenizer_config.json"));
    special.plain = false;
  } else if (given.is_string()) {
    special.token = AddedToken{std::string(given.get_string()), true, false};
    // The class may give its own flags to a token that comes as plain text.
    const auto* row = class_->at("special").as_object().if_contains(role);
    if (row != nullptr && row->is_object()) {
      MODELD_ASSIGN(auto flags, AddedToken::parse(row->get_object(), "tokenizer_classes.json"));
      flags.content = special.token.content;
      special.token = std::move(flags);
      special.plain = false;
    }
  } else {
    return fail(
        Errc::malformed,
        fmt::format("reading 'tokenizer_config.json': {} is neither text nor a token", role));
  }
  if (role != k_additional) {
    for (const auto& [id, token] : decoder_tokens_) {
      if (token.content != special.token.content) continue;
      special.token = token;
      special.plain = false;
    }
  }
  const auto same = [&](const Special& s) { return s.token.content == special.token.content; };
  if (std::none_of(special_.begin(), special_.end(), same)) {
    special_.push_back(special);
    out_.special_contents_.push_back(special.token.content);
  }
  return {};
}

void HfTokenizerLoader::add_tokens() {
  std::vector<AddedToken> first;
  for (const auto& [id, token] : decoder_tokens_) {
    if (!out_.added_.holds(token)) first.push_back(token);
  }
  const auto is_special = [&](const std::string& content) {
    return std::find(out_.special_contents_.begin(), out_.special_contents_.end(), content) !=
           out_.special_contents_.end();
  };
  const auto known = [&](const std::string& content) {
    return out_.added_.id_of(content).has_value() ||
           std::any_of(first.begin(), first.end(),
                       [&](const AddedToken& token) { return token.content == content; });
  };
  std::vector<AddedToken> all = first;
  for (const Special& special : special_) {
    const bool listed = special.plain
                            ? known(special.token.content)
                            : std::find(first.begin(), first.end(), special.token) != first.end();
    if (!listed) all.push_back(special.token);
  }
  for (AddedToken& token : all) {
    token.special = token.special || is_special(token.content);
    out_.added_.add(std::move(token), out_.ids_);
  }
}

} // namespace modeld::quantize
