// SPDX-License-Identifier: Apache-2.0
#include "daemon/inspection.hpp"
#include "validate/escape.hpp"

#include <boost/json.hpp>

#include <cmath>
#include <limits>

namespace modeld::daemon {
namespace {

namespace json = boost::json;
using validate::GgufValueView;

/// JSON is UTF-8: other bytes become visible escapes.
json::value string_value(std::string_view text) {
  if (validate::utf8_valid_prefix(text) == text.size()) return json::value(text);
  return json::value(validate::escape_text(text, std::numeric_limits<std::size_t>::max()));
}

/// JSON has no NaN and no infinity: those become strings.
json::value number_value(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
}

json::value scalar_value(const GgufValueView& value) {
  if (const auto flag = value.as_bool()) return *flag;
  if (const auto number = value.as_u64()) return *number;
  if (const auto number = value.as_i64()) return *number;
  if (const auto number = value.as_f64()) return number_value(*number);
  if (const auto text = value.as_string()) return string_value(*text);
  return nullptr;
}

} // namespace

json::value inspection_json(const Inspection::Item& item) {
  if (const auto* text = std::get_if<std::string>(&item.value)) return string_value(*text);
  const auto& view = std::get<GgufValueView>(item.value);
  if (!view.is_array()) return scalar_value(view);
  json::array list;
  list.reserve(static_cast<std::size_t>(view.count));
  if (view.element == validate::GgufType::string) {
    for (const std::string_view text : view.strings())
      list.push_back(string_value(text));
  } else {
    for (std::uint64_t i = 0; i < view.count; ++i)
      list.push_back(scalar_value(view.at(i)));
  }
  return list;
}

json::object inspection_json(const Inspection& file) {
  json::array metadata;
  for (const Inspection::Item& item : file.metadata) {
    metadata.push_back(json::object{
        {"key", string_value(item.key)}, {"type", item.type()}, {"value", inspection_json(item)}});
  }
  json::array tensors;
  for (const Inspection::Tensor& tensor : file.tensors) {
    tensors.push_back(json::object{{"name", string_value(tensor.name)},
                                   {"type", tensor.type},
                                   {"shape", json::value_from(tensor.shape)},
                                   {"offset", tensor.offset},
                                   {"bytes", tensor.bytes}});
  }
  json::object types;
  Inspection::OfType all;
  for (const auto& [type, of] : file.types()) {
    types[type] =
        json::object{{"tensors", of.tensors}, {"elements", of.elements}, {"bytes", of.bytes}};
    all.elements += of.elements;
    all.bytes += of.bytes;
  }
  json::object head;
  for (const auto& [name, value] : file.head)
    head[name] = value;
  return {{"path", string_value(file.path)},
          {"format", file.format},
          {"header", std::move(head)},
          {"file_bytes", file.file_bytes},
          {"data_start", file.data_start},
          {"metadata", std::move(metadata)},
          {"tensors", std::move(tensors)},
          {"types", std::move(types)},
          {"totals", json::object{{"tensors", file.tensors.size()},
                                  {"elements", all.elements},
                                  {"bytes", all.bytes}}}};
}

} // namespace modeld::daemon
