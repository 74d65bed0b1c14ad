// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/json_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::validate {

class JsonDocument;

/// One value of a document; cheap to copy, lives as long as the document. A missing value is a
/// value too, of which every question has the answer no: `document.root()["a"]["b"].as_u64()`.
class JsonValue {
public:
  JsonValue() = default;

  bool exists() const { return document_ != nullptr; }
  bool is_object() const { return kind() == JsonToken::object_begin; }
  bool is_array() const { return kind() == JsonToken::array_begin; }
  bool is_string() const { return kind() == JsonToken::string; }
  bool is_number() const { return kind() == JsonToken::number; }
  bool is_null() const { return exists() && kind() == JsonToken::null; }
  JsonToken kind() const; ///< JsonToken::end where there is no value
  /// Where it stands in the text.
  std::uint64_t offset() const;

  /// The first member of this name.
  JsonValue operator[](std::string_view name) const;
  /// Members or elements.
  std::size_t size() const;
  std::optional<std::string_view> as_string() const;
  /// A plain whole number.
  std::optional<std::uint64_t> as_u64() const;
  std::optional<double> as_double() const; ///< NaN and infinities included where they are accepted
  std::optional<bool> as_bool() const;
  /// The literal of a number, the text of a string; for messages.
  std::string_view text() const;

  /// Members or elements in order: `for (JsonValue v : value)`, with v.name() for members.
  class Iterator {
  public:
    JsonValue operator*() const { return {document_, at_}; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

  private:
    friend JsonValue;
    Iterator(const JsonDocument* document, std::uint32_t at) : document_(document), at_(at) {}
    const JsonDocument* document_;
    std::uint32_t at_;
  };
  Iterator begin() const;
  Iterator end() const;
  std::string_view name() const; ///< of a member

private:
  friend JsonDocument;
  JsonValue(const JsonDocument* document, std::uint32_t at) : document_(document), at_(at) {}
  const JsonDocument* document_ = nullptr;
  std::uint32_t at_ = 0;
};

/// A JSON text as a flat tree with the place of every value and the members that stand twice. Views
/// into the text where nothing was escaped; the text must outlive it.
class JsonDocument {
public:
  struct Duplicate {
    std::string name;
    std::uint64_t offset;
  };

  static JsonDocument parse(std::string_view text,
                            JsonReader::NonFinite non_finite = JsonReader::NonFinite::refuse,
                            std::size_t max_depth = 64, std::size_t max_values = k_max_values);

  /// A value takes about 60 bytes here and two in a text: this bounds what a hostile one costs.
  static constexpr std::size_t k_max_values = 8'000'000;

  JsonDocument() = default;
  JsonDocument(JsonDocument&&) = default;
  JsonDocument& operator=(JsonDocument&&) = default;
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  /// No value where the text is no JSON.
  JsonValue root() const { return nodes_.empty() ? JsonValue() : JsonValue(this, 0); }
  /// Empty where the text is JSON.
  const std::string& fault() const { return fault_; }
  std::uint64_t fault_offset() const { return fault_offset_; }
  /// At most a hundred.
  const std::vector<Duplicate>& duplicates() const { return duplicates_; }
  bool has_non_finite() const { return has_non_finite_; }
  bool has_byte_order_mark() const { return has_mark_; }

private:
  friend class JsonValue;
  struct Node {
    JsonToken kind = JsonToken::null;
    bool flag = false;       ///< of a boolean
    std::uint32_t end = 0;   ///< one behind the last node of this value
    std::uint32_t count = 0; ///< of members or elements
    std::uint64_t offset = 0;
    std::string_view name;
    std::string_view text;
  };

  bool build(std::string_view text, JsonReader& reader, std::size_t max_values);
  std::string_view keep(std::string_view text, std::string_view whole);
  void find_duplicates(std::uint32_t object);

  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<std::string>> kept_; ///< strings that had escapes
  std::string fault_;
  std::uint64_t fault_offset_ = 0;
  std::vector<Duplicate> duplicates_;
  bool has_non_finite_ = false;
  bool has_mark_ = false;
};

/// The bytes as text.
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace modeld::validate
