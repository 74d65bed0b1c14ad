// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/fields.hpp"
#include "quantize/tokenizer/files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

namespace modeld::quantize {
namespace {

// Written in this order: sampling first, then who and what.
constexpr std::array<std::string_view, 12> k_sampling{
    "sampling.sequence", "sampling.top_k",           "sampling.top_p",
    "sampling.min_p",    "sampling.xtc_probability", "sampling.xtc_threshold",
    "sampling.temp",     "sampling.penalty_last_n",  "sampling.penalty_repeat",
    "sampling.mirostat", "sampling.mirostat_tau",    "sampling.mirostat_eta"};
constexpr std::array<std::string_view, 9> k_before_license{
    "name",     "author",      "version",      "organization", "finetune",
    "basename", "description", "quantized_by", "size_label"};
constexpr std::array<std::string_view, 10> k_after_license{
    "license.name", "license.link", "url",        "doi",         "uuid",
    "repo_url",     "source.url",   "source.doi", "source.uuid", "source.repo_url"};
constexpr std::array<std::string_view, 9> k_source_members{
    "name", "author", "version", "organization", "description", "url", "doi", "uuid", "repo_url"};

std::string_view kind_of(const boost::json::value& value) {
  switch (value.kind()) {
  case boost::json::kind::null:
    return "null";
  case boost::json::kind::bool_:
    return "a yes/no value";
  case boost::json::kind::int64:
  case boost::json::kind::uint64:
    return "a whole number";
  case boost::json::kind::double_:
    return "a number";
  case boost::json::kind::string:
    return "text";
  case boost::json::kind::array:
    return "a list";
  case boost::json::kind::object:
    return value.get_object().contains("timestamp") ? "a date" : "a mapping";
  }
  return "unknown";
}

tl::unexpected<Error> wrong_type(std::string_view key, const boost::json::value& value,
                                 std::string_view wanted) {
  const std::string text = boost::json::serialize(value);
  constexpr std::size_t k_shown = 60;
  return fail(Errc::malformed,
              fmt::format("writing '{}': {} ({}) where {} is needed", key, kind_of(value),
                          text.substr(0, k_shown), wanted),
              "quote the value in README.md, correct generation_config.json, or give the key in a "
              "--metadata file");
}

Result<void> write_text(KvList& kv, const std::string& key, const boost::json::value& value) {
  if (!is_truthy(&value)) return {};
  if (!value.is_string()) return wrong_type(key, value, "text");
  kv.set_text(key, std::string(value.get_string()));
  return {};
}

Result<void> write_int32(KvList& kv, const std::string& key, const boost::json::value& value) {
  const auto number = whole_number(&value);
  if (!number || *number < std::numeric_limits<std::int32_t>::min() ||
      *number > std::numeric_limits<std::int32_t>::max()) {
    return wrong_type(key, value, "a whole number of 32 bits");
  }
  kv.set(key, static_cast<std::int32_t>(*number));
  return {};
}

Result<void> write_float(KvList& kv, const std::string& key, const boost::json::value& value) {
  double number = 0;
  if (value.is_double()) {
    number = value.get_double();
  } else if (value.is_uint64()) {
    number = static_cast<double>(value.get_uint64());
  } else if (const auto whole = whole_number(&value)) {
    number = static_cast<double>(*whole);
  } else {
    return wrong_type(key, value, "a number");
  }
  const auto narrow = static_cast<float>(number);
  if (std::isinf(narrow) && !std::isinf(number)) {
    return wrong_type(key, value, "a number of single precision");
  }
  kv.set(key, narrow);
  return {};
}

Result<void> write_sampling(const MetadataFields& fields, KvList& kv) {
  for (const auto field : k_sampling) {
    const auto* value = fields.find(field);
    if (value == nullptr) continue;
    const std::string key = fmt::format("general.{}", field);
    if (field == "sampling.sequence") {
      MODELD_TRY(write_text(kv, key, *value));
    } else if (field == "sampling.top_k" || field == "sampling.penalty_last_n" ||
               field == "sampling.mirostat") {
      MODELD_TRY(write_int32(kv, key, *value));
    } else {
      MODELD_TRY(write_float(kv, key, *value));
    }
  }
  return {};
}

/// One licence, or several with commas between them.
Result<void> write_license(const MetadataFields& fields, KvList& kv) {
  const auto* value = fields.find("license");
  if (value == nullptr) return {};
  if (!value->is_array()) return write_text(kv, "general.license", *value);
  std::string joined;
  for (const auto& each : value->get_array()) {
    if (!each.is_string()) return wrong_type("general.license", each, "text");
    if (&each != &value->get_array().front()) joined += ',';
    joined += each.get_string();
  }
  kv.set_text("general.license", joined);
  return {};
}

Result<void> write_sources(const MetadataFields& fields, KvList& kv, std::string_view field,
                           std::string_view prefix) {
  const auto* value = fields.find(field);
  if (value == nullptr) return {};
  const auto* list = value->if_array();
  if (list == nullptr) return wrong_type(fmt::format("{}.count", prefix), *value, "a list");
  kv.set(fmt::format("{}.count", prefix), static_cast<std::uint32_t>(list->size()));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto* entry = (*list)[i].if_object();
    if (entry == nullptr) {
      return wrong_type(fmt::format("{}.{}", prefix, i), (*list)[i], "a mapping");
    }
    for (const auto name : k_source_members) {
      const auto* item = entry->if_contains(name);
      if (item == nullptr) continue;
      MODELD_TRY(write_text(kv, fmt::format("{}.{}.{}", prefix, i, name), *item));
    }
  }
  return {};
}

/// A list of texts; or of whole numbers, numbers, or yes/no values, if it is nothing but those.
Result<void> write_list(const MetadataFields& fields, KvList& kv, std::string_view field) {
  const auto* value = fields.find(field);
  if (value == nullptr) return {};
  const std::string key = fmt::format("general.{}", field);
  const auto* list = value->if_array();
  if (list == nullptr) return wrong_type(key, *value, "a list");
  std::vector<std::string> texts;
  std::vector<std::int32_t> numbers;
  std::vector<float> reals;
  std::vector<bool> flags;
  for (const auto& each : *list) {
    if (each.is_string()) {
      texts.emplace_back(each.get_string());
    } else if (each.is_bool()) {
      flags.push_back(each.get_bool());
    } else if (each.is_double()) {
      reals.push_back(static_cast<float>(each.get_double()));
    } else if (const auto number = whole_number(&each);
               number && *number >= std::numeric_limits<std::int32_t>::min() &&
               *number <= std::numeric_limits<std::int32_t>::max()) {
      numbers.push_back(static_cast<std::int32_t>(*number));
    } else {
      return wrong_type(key, each, "text");
    }
    const std::size_t most = std::max({texts.size(), numbers.size(), reals.size(), flags.size()});
    if (most != texts.size() + numbers.size() + reals.size() + flags.size()) {
      return wrong_type(key, each, "a value of the type of the others");
    }
  }
  kv.set_array(key, std::move(texts));
  kv.set_array(key, std::move(numbers));
  kv.set_array(key, std::move(reals));
  kv.set_array(key, std::move(flags));
  return {};
}

} // namespace

Result<void> write_fields(const MetadataFields& fields, KvList& kv) {
  MODELD_TRY(write_sampling(fields, kv));
  const auto write_texts = [&](const auto& names) -> Result<void> {
    for (const std::string_view field : names) {
      const auto* value = fields.find(field);
      if (value != nullptr) MODELD_TRY(write_text(kv, fmt::format("general.{}", field), *value));
    }
    return {};
  };
  MODELD_TRY(write_texts(k_before_license));
  MODELD_TRY(write_license(fields, kv));
  MODELD_TRY(write_texts(k_after_license));
  MODELD_TRY(write_sources(fields, kv, "base_models", "general.base_model"));
  MODELD_TRY(write_sources(fields, kv, "datasets", "general.dataset"));
  MODELD_TRY(write_list(fields, kv, "tags"));
  return write_list(fields, kv, "languages");
}

} // namespace modeld::quantize
