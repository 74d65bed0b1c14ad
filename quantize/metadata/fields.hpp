// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/kv_list.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace modeld::quantize {

/// What is known about a model before it becomes keys: field name ("author", "base_models", ...) to
/// a value of any type, as card, configuration and override give it. Types are checked on writing.
class MetadataFields {
public:
  /// Null where nobody said anything.
  const boost::json::value* find(std::string_view field) const;
  bool has(std::string_view field) const { return find(field) != nullptr; }
  void set(std::string_view field, boost::json::value value);
  void set_if_absent(std::string_view field, const std::optional<std::string>& value);
  /// Adds a string, or the elements of a list; anything else only makes an empty list.
  void append(std::string_view field, const boost::json::value& value);
  /// The text of a field; nothing where it is absent or no text.
  std::optional<std::string> text(std::string_view field) const;

private:
  boost::json::object fields_;
};

/// By the reference's order: card, config.json's _name_or_path, the folder's name.
Result<void> apply_card(MetadataFields& fields, const boost::json::object& card,
                        std::int64_t total_parameters);
void apply_model_id(MetadataFields& fields, std::string_view id, std::int64_t total_parameters);
/// generation_config.json's sampling values.
void apply_generation_config(MetadataFields& fields, const boost::json::object& config);
/// --metadata: general.* keys.
Result<void> apply_override(MetadataFields& fields, const boost::json::object& override_file);

/// Writes the keys. malformed: a value of a type that the key cannot have; the message says where
/// such values come from.
Result<void> write_fields(const MetadataFields& fields, KvList& kv);

} // namespace modeld::quantize
