// SPDX-License-Identifier: Apache-2.0
#include "daemon/estimate.hpp"
#include "daemon/human_text.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {

std::string estimate_text(const Estimate& estimate) {
  std::string out =
      fmt::format("{}: {}, {} weights", estimate.name, estimate.architecture, estimate.parameters);
  if (estimate.trained_context > 0)
    out += fmt::format(", trained for {} tokens", estimate.trained_context);
  out += fmt::format("\nat {} tokens: {} of keys and values (F16), about {} to compute in\n\n",
                     estimate.context, human_bytes(estimate.cache_bytes),
                     human_bytes(estimate.buffer_bytes));
  std::vector<std::vector<std::string>> rows{{"RECIPE", "FILE", "BITS", "MEMORY", "NOTE"}};
  for (const Estimate::Variant& one : estimate.variants) {
    const bool made = one.file_bytes > 0;
    rows.push_back({one.recipe, made ? human_bytes(one.file_bytes) : "-",
                    made ? fmt::format("{:.2f}", one.bits_per_weight) : "-",
                    made ? human_bytes(estimate.memory_bytes(one)) : "-", one.note});
  }
  return out + table(rows);
}

boost::json::object estimate_json(const Estimate& estimate) {
  boost::json::array variants;
  for (const Estimate::Variant& one : estimate.variants) {
    boost::json::object item{{"recipe", one.recipe}};
    if (one.file_bytes > 0) {
      item["file_bytes"] = one.file_bytes;
      item["bits_per_weight"] = one.bits_per_weight;
      item["memory_bytes"] = estimate.memory_bytes(one);
    }
    if (!one.note.empty()) item["note"] = one.note;
    variants.push_back(std::move(item));
  }
  return {{"architecture", estimate.architecture}, {"name", estimate.name},
          {"parameters", estimate.parameters},     {"trained_context", estimate.trained_context},
          {"context", estimate.context},           {"cache_bytes", estimate.cache_bytes},
          {"buffer_bytes", estimate.buffer_bytes}, {"variants", std::move(variants)}};
}

Result<Estimate> estimate_from_json(const boost::json::object& object) {
  Estimate out;
  MODELD_ASSIGN(out.architecture, json_string(object, "architecture"));
  MODELD_ASSIGN(out.name, json_string(object, "name"));
  MODELD_ASSIGN(out.parameters, json_uint(object, "parameters"));
  MODELD_ASSIGN(out.trained_context, json_uint(object, "trained_context"));
  MODELD_ASSIGN(out.context, json_uint(object, "context"));
  MODELD_ASSIGN(out.cache_bytes, json_uint(object, "cache_bytes"));
  MODELD_ASSIGN(out.buffer_bytes, json_uint(object, "buffer_bytes"));
  MODELD_ASSIGN(const auto* variants, json_array(object, "variants"));
  for (const auto& value : *variants) {
    if (!value.is_object()) return fail(Errc::malformed, "reading an estimate: no object");
    const auto& item = value.get_object();
    Estimate::Variant one;
    MODELD_ASSIGN(one.recipe, json_string(item, "recipe"));
    if (item.contains("file_bytes")) {
      MODELD_ASSIGN(one.file_bytes, json_uint(item, "file_bytes"));
      const auto* bits = item.if_contains("bits_per_weight");
      if (bits != nullptr && bits->is_number()) one.bits_per_weight = bits->to_number<double>();
    }
    if (item.contains("note")) {
      MODELD_ASSIGN(one.note, json_string(item, "note"));
    }
    out.variants.push_back(std::move(one));
  }
  return out;
}

} // namespace modeld::daemon
