// SPDX-License-Identifier: Apache-2.0
#include "validate/json_document.hpp"

#include "validate/escape.hpp"
#include "validate/name_index.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace modeld::validate {
namespace {

constexpr std::string_view k_mark = "\xEF\xBB\xBF";
constexpr std::size_t k_max_duplicates = 100;

} // namespace

JsonToken JsonValue::kind() const {
  return document_ == nullptr ? JsonToken::end : document_->nodes_[at_].kind;
}

std::uint64_t JsonValue::offset() const {
  return document_ == nullptr ? 0 : document_->nodes_[at_].offset;
}

std::string_view JsonValue::name() const {
  return document_ == nullptr ? std::string_view() : document_->nodes_[at_].name;
}

std::string_view JsonValue::text() const {
  return document_ == nullptr ? std::string_view() : document_->nodes_[at_].text;
}

std::size_t JsonValue::size() const {
  return document_ == nullptr ? 0 : document_->nodes_[at_].count;
}

JsonValue JsonValue::operator[](std::string_view name) const {
  if (is_object())
    for (const JsonValue member : *this)
      if (member.name() == name) return member;
  return {};
}

std::optional<std::string_view> JsonValue::as_string() const {
  if (!is_string()) return std::nullopt;
  return text();
}

std::optional<std::uint64_t> JsonValue::as_u64() const {
  return is_number() ? plain_u64(text()) : std::nullopt;
}

std::optional<double> JsonValue::as_double() const {
  if (!is_number()) return std::nullopt;
  const std::string_view literal = text();
  if (literal == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (literal == "Infinity") return std::numeric_limits<double>::infinity();
  if (literal == "-Infinity") return -std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, ec] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  if (ec == std::errc::result_out_of_range)
    return literal.find("e-") != std::string_view::npos ? 0.0
                                                        : std::numeric_limits<double>::infinity();
  if (ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<bool> JsonValue::as_bool() const {
  if (kind() != JsonToken::boolean) return std::nullopt;
  return document_->nodes_[at_].flag;
}

JsonValue::Iterator& JsonValue::Iterator::operator++() {
  at_ = document_->nodes_[at_].end;
  return *this;
}

JsonValue::Iterator JsonValue::begin() const {
  return is_object() || is_array() ? Iterator(document_, at_ + 1) : Iterator(document_, 0);
}

JsonValue::Iterator JsonValue::end() const {
  return is_object() || is_array() ? Iterator(document_, document_->nodes_[at_].end)
                                   : Iterator(document_, 0);
}

JsonDocument JsonDocument::parse(std::string_view text, JsonReader::NonFinite non_finite,
                                 std::size_t max_depth, std::size_t max_values) {
  JsonDocument document;
  std::size_t shift = 0;
  if (text.starts_with(k_mark)) {
    document.has_mark_ = true;
    shift = k_mark.size();
    text.remove_prefix(shift);
  }
  if (const std::size_t good = utf8_valid_prefix(text); good != text.size()) {
    document.fault_ = "a byte that is no UTF-8";
    document.fault_offset_ = shift + good;
    return document;
  }
  JsonReader reader(text, max_depth, non_finite);
  if (!document.build(text, reader, max_values)) {
    document.fault_ = reader.fault().empty()
                          ? "more values than the limit of " + std::to_string(max_values)
                          : reader.fault();
    document.fault_offset_ = shift + reader.offset();
    document.nodes_.clear();
  }
  return document;
}

std::string_view JsonDocument::keep(std::string_view text, std::string_view whole) {
  const bool inside = text.data() >= whole.data() && text.data() <= whole.data() + whole.size();
  if (inside || text.empty()) return text;
  kept_.push_back(std::make_unique<std::string>(text));
  return *kept_.back();
}

bool JsonDocument::build(std::string_view text, JsonReader& reader, std::size_t max_values) {
  // No more values than commas and brackets: one allocation, and never twice the memory.
  const auto most = 1 + std::count_if(text.begin(), text.end(),
                                      [](char c) { return c == ',' || c == '[' || c == '{'; });
  nodes_.reserve(std::min(max_values, static_cast<std::size_t>(most)));
  std::vector<std::uint32_t> open;
  std::string_view name;
  for (;;) {
    const JsonToken token = reader.next();
    switch (token) {
    case JsonToken::fault:
      return false;
    case JsonToken::end:
      return true;
    case JsonToken::key:
      name = keep(reader.text(), text);
      continue;
    case JsonToken::object_end:
    case JsonToken::array_end:
      nodes_[open.back()].end = static_cast<std::uint32_t>(nodes_.size());
      if (token == JsonToken::object_end) find_duplicates(open.back());
      open.pop_back();
      continue;
    default:
      break;
    }
    if (nodes_.size() >= max_values) return false;
    if (!open.empty()) ++nodes_[open.back()].count;
    Node node;
    node.kind = token;
    node.offset = reader.offset();
    node.name = std::exchange(name, {});
    if (token == JsonToken::string) node.text = keep(reader.text(), text);
    if (token == JsonToken::boolean) node.flag = reader.boolean();
    if (token == JsonToken::number) {
      node.text = reader.text();
      has_non_finite_ |= node.text.ends_with('N') || node.text.ends_with('y');
    }
    const auto at = static_cast<std::uint32_t>(nodes_.size());
    node.end = at + 1;
    if (token == JsonToken::object_begin || token == JsonToken::array_begin) open.push_back(at);
    nodes_.push_back(node);
  }
}

void JsonDocument::find_duplicates(std::uint32_t object) {
  NameIndex names;
  names.reserve(nodes_[object].count);
  for (const JsonValue member : JsonValue(this, object)) {
    const auto name_at = [&](std::uint32_t i) { return nodes_[i].name; };
    if (names.insert(member.name(), member.at_, name_at) && duplicates_.size() < k_max_duplicates)
      duplicates_.push_back({std::string(member.name()), member.offset()});
  }
}

} // namespace modeld::validate
