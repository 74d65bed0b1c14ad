// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/fields.hpp"

#include "quantize/metadata/names.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <array>
#include <utility>

namespace modeld::quantize {
namespace {

using FieldFromKey = std::pair<std::string_view, std::string_view>;

// Field and card key, in the order in which the reference asks: the first that is there wins.
constexpr std::array<FieldFromKey, 27> k_card_keys{{
    {"name", "name"},
    {"author", "author"},
    {"version", "version"},
    {"organization", "organization"},
    {"description", "description"},
    {"finetune", "finetune"},
    {"basename", "basename"},
    {"size_label", "size_label"},
    {"source.url", "url"},
    {"source.doi", "doi"},
    {"source.uuid", "uuid"},
    {"source.repo_url", "repo_url"},
    {"name", "model_name"},
    {"author", "model_author"},
    {"version", "model_version"},
    {"organization", "model_organization"},
    {"description", "model_description"},
    {"finetune", "model_finetune"},
    {"basename", "model_basename"},
    {"size_label", "model_size_label"},
    {"source.url", "model_url"},
    {"source.doi", "model_doi"},
    {"source.uuid", "model_uuid"},
    {"source.repo_url", "model_repo_url"},
    {"name", "model_name"},
    {"author", "model_creator"},
    {"basename", "model_type"},
}};

constexpr std::array<FieldFromKey, 13> k_generation_keys{{
    {"sampling.sequence", "sequence"},
    {"sampling.top_k", "top_k"},
    {"sampling.top_p", "top_p"},
    {"sampling.min_p", "min_p"},
    {"sampling.xtc_probability", "xtc_probability"},
    {"sampling.xtc_threshold", "xtc_threshold"},
    {"sampling.temp", "temperature"},
    {"sampling.penalty_last_n", "penalty_last_n"},
    {"sampling.penalty_repeat", "repetition_penalty"},
    {"sampling.penalty_repeat", "penalty_repeat"},
    {"sampling.mirostat", "mirostat"},
    {"sampling.mirostat_tau", "mirostat_tau"},
    {"sampling.mirostat_eta", "mirostat_eta"},
}};

// The override names every field by its key without "general.", except the licence itself, which
// the reference does not take from there.
constexpr std::array<std::string_view, 34> k_override_fields{
    "sampling.sequence",
    "sampling.top_k",
    "sampling.top_p",
    "sampling.min_p",
    "sampling.xtc_probability",
    "sampling.xtc_threshold",
    "sampling.temp",
    "sampling.penalty_last_n",
    "sampling.penalty_repeat",
    "sampling.mirostat",
    "sampling.mirostat_tau",
    "sampling.mirostat_eta",
    "name",
    "author",
    "version",
    "organization",
    "finetune",
    "basename",
    "description",
    "quantized_by",
    "size_label",
    "license.name",
    "license.link",
    "url",
    "doi",
    "uuid",
    "repo_url",
    "source.url",
    "source.doi",
    "source.uuid",
    "source.repo_url",
    "base_models",
    "datasets",
    "tags",
};

boost::json::object parts_as_source(std::string_view id, std::int64_t total, bool with_url) {
  const ModelIdParts parts = model_id_parts(id, total);
  boost::json::object out;
  if (parts.name) out["name"] = id_to_title(*parts.name);
  if (parts.organization) out["organization"] = id_to_title(*parts.organization);
  if (parts.version) out["version"] = *parts.version;
  if (with_url && parts.organization && parts.name) {
    out["repo_url"] = fmt::format("https://huggingface.co/{}/{}", *parts.organization, *parts.name);
  }
  return out;
}

/// "https://huggingface.co/org/name" and no more gives "org/name". The dot stands for any
/// character in the reference's pattern.
std::optional<std::string_view> hub_id_of_url(std::string_view url) {
  constexpr std::string_view k_host = "huggingface.co/";
  if (url.find("huggingface.co") == std::string_view::npos) return std::nullopt;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return std::nullopt;
  }
  if (!rest.starts_with(k_host)) return std::nullopt;
  rest.remove_prefix(k_host.size());
  // `$` also matches before a final line end.
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == rest.size() ||
      rest.find('/', slash + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return rest;
}

boost::json::object source_entry(const boost::json::value& value, std::int64_t total) {
  if (const auto* object = value.if_object()) return *object;
  const auto* text = value.if_string();
  if (text == nullptr) return {};
  const std::string_view id = *text;
  if (!id.starts_with("http://") && !id.starts_with("https://") && !id.starts_with("ssh://")) {
    return parts_as_source(id, total, true);
  }
  boost::json::object out;
  if (const auto hub_id = hub_id_of_url(id)) out = parts_as_source(*hub_id, total, false);
  out["repo_url"] = id;
  return out;
}

/// base_model and its other spellings, datasets and theirs. The first key that is there counts,
/// even if it is empty.
void apply_sources(MetadataFields& fields, std::string_view field,
                   const std::array<std::string_view, 3>& keys, const boost::json::object& card,
                   std::int64_t total) {
  const boost::json::value* found = nullptr;
  for (const auto key : keys) {
    found = card.if_contains(key);
    if (found != nullptr) break;
  }
  if (found == nullptr) return;
  boost::json::array entries;
  if (found->is_string()) entries.push_back(source_entry(*found, total));
  if (const auto* list = found->if_array()) {
    for (const auto& each : *list) {
      entries.push_back(source_entry(each, total));
    }
  }
  fields.set(field, std::move(entries));
}

} // namespace

const boost::json::value* MetadataFields::find(std::string_view field) const {
  const auto* value = fields_.if_contains(field);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void MetadataFields::set(std::string_view field, boost::json::value value) {
  fields_[field] = std::move(value);
}

void MetadataFields::set_if_absent(std::string_view field,
                                   const std::optional<std::string>& value) {
  if (value && !has(field)) set(field, boost::json::string(*value));
}

void MetadataFields::append(std::string_view field, const boost::json::value& value) {
  if (!has(field)) set(field, boost::json::array());
  auto& list = fields_[field].get_array();
  if (value.is_string()) list.push_back(value);
  if (const auto* values = value.if_array())
    list.insert(list.end(), values->begin(), values->end());
}

std::optional<std::string> MetadataFields::text(std::string_view field) const {
  const auto* value = find(field);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

Result<void> apply_card(MetadataFields& fields, const boost::json::object& card,
                        std::int64_t total) {
  const auto use = [&](std::string_view field, std::string_view key) {
    const auto* value = card.if_contains(key);
    if (value != nullptr && !fields.has(field)) fields.set(field, *value);
  };
  const auto add = [&](std::string_view field, std::string_view key) {
    const auto* value = card.if_contains(key);
    if (value != nullptr && !value->is_null()) fields.append(field, *value);
  };
  for (const auto& [field, key] : k_card_keys) {
    use(field, key);
  }
  apply_sources(fields, "base_models", {"base_model", "base_models", "base_model_sources"}, card,
                total);
  apply_sources(fields, "datasets", {"datasets", "dataset", "dataset_sources"}, card, total);
  use("license", "license");
  use("license.name", "license_name");
  use("license.link", "license_link");
  add("tags", "tags");
  add("tags", "pipeline_tag");
  add("languages", "languages");
  add("languages", "language");
  return {};
}

void apply_model_id(MetadataFields& fields, std::string_view id, std::int64_t total) {
  const ModelIdParts parts = model_id_parts(id, total);
  const auto title = [](const std::optional<std::string>& text) {
    return text ? std::optional(id_to_title(*text)) : std::nullopt;
  };
  fields.set_if_absent("name", title(parts.name));
  fields.set_if_absent("organization", title(parts.organization));
  fields.set_if_absent("basename", parts.basename);
  fields.set_if_absent("finetune", parts.finetune);
  fields.set_if_absent("version", parts.version);
  fields.set_if_absent("size_label", parts.size_label);
}

void apply_generation_config(MetadataFields& fields, const boost::json::object& config) {
  for (const auto& [field, key] : k_generation_keys) {
    if (const auto* value = config.if_contains(key)) fields.set(field, *value);
  }
}

Result<void> apply_override(MetadataFields& fields, const boost::json::object& override_file) {
  const auto use = [&](std::string_view field) {
    const auto* value = override_file.if_contains(fmt::format("general.{}", field));
    if (value != nullptr) fields.set(field, *value);
  };
  for (const auto field : k_override_fields) {
    use(field);
  }
  use("languages");
  return {};
}

} // namespace modeld::quantize
