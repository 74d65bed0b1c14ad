// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit.hpp"
#include "daemon/terminal_text.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <iterator>

namespace modeld::daemon {
namespace {

namespace json = boost::json;
using Out = std::back_insert_iterator<std::string>;

void print_list(Out out, std::string_view what, const std::vector<std::string>& names) {
  constexpr std::size_t k_shown = 20;
  if (names.empty()) return;
  fmt::format_to(out, "{} ({})\n", what, names.size());
  for (std::size_t i = 0; i < names.size() && i < k_shown; ++i)
    fmt::format_to(out, "  {}\n", terminal_text(names[i]));
  if (names.size() > k_shown) fmt::format_to(out, "  ...\n");
}

json::array list_json(const std::vector<std::string>& names) {
  json::array list;
  for (const std::string& name : names)
    list.emplace_back(name);
  return list;
}

void print_made(Out out, const Audit& audit) {
  for (const Audit::Made& one : audit.made) {
    fmt::format_to(out, "  {} {} [{}]", terminal_text(one.name), one.type, fmt::join(one.ne, ", "));
    if (one.sources.empty()) {
      fmt::format_to(out, " made by the converter");
    } else {
      fmt::format_to(out, " <- {}", terminal_text(one.sources.front()));
      if (one.sources.size() > 1)
        fmt::format_to(out, " ... {} ({})", terminal_text(one.sources.back()), one.sources.size());
    }
    if (!one.operations.empty()) fmt::format_to(out, "  {}", terminal_text(one.operations));
    fmt::format_to(out, "\n");
  }
}

void print_output(Out out, const Audit::Output& output) {
  fmt::format_to(out, "GGUF: {} tensors in {} files, {} made again and compared byte by byte\n",
                 output.tensors, output.files.size(), output.compared);
  print_list(out, "missing from the GGUF file", output.missing);
  print_list(out, "in the GGUF file only", output.extra);
  print_list(out, "of another shape", output.other_shape);
  print_list(out, "with other values", output.other_values);
}

json::array made_json(const Audit& audit) {
  json::array list;
  for (const Audit::Made& one : audit.made) {
    json::array ne(one.ne.begin(), one.ne.end());
    json::object item{{"name", one.name},
                      {"type", one.type},
                      {"ne", std::move(ne)},
                      {"sources", list_json(one.sources)},
                      {"operations", one.operations}};
    if (!one.sha256.empty()) item["sha256"] = one.sha256;
    list.push_back(std::move(item));
  }
  return list;
}

} // namespace

std::string audit_text(const Audit& audit, bool every) {
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "files\n");
  for (const Audit::File& file : audit.files) {
    fmt::format_to(out, "  {}: {} bytes = {} of header ({} padding) + {} of {} tensors{}\n",
                   terminal_text(file.path), file.size, file.header, file.padding, file.data,
                   file.tensors,
                   file.header + file.data == file.size ? "" : ", which do not add up");
  }
  fmt::format_to(out, "tensors\n");
  for (const auto& [type, of] : audit.types)
    fmt::format_to(out, "  {:<12} {:>6} tensors {:>16} elements {:>16} bytes\n", type, of.tensors,
                   of.elements, of.bytes);
  fmt::format_to(out, "  {:<12} {:>6} tensors {:>16} elements {:>16} bytes\n", "total",
                 audit.tensors(), audit.elements(), audit.bytes());
  if (audit.declared_bytes)
    fmt::format_to(out, "index: total_size {}{}\n", *audit.declared_bytes,
                   *audit.declared_bytes == audit.bytes() ? ", which is the sum"
                                                          : ", which is not the sum");
  if (audit.tied)
    fmt::format_to(out, "output: {}\n",
                   *audit.tied ? "tied to the embedding" : "a tensor of its own");
  if (!audit.conversion_error.empty())
    fmt::format_to(out, "conversion: {}\n", terminal_text(audit.conversion_error));
  else
    fmt::format_to(out, "conversion: {} tensors{}\n", audit.made.size(),
                   audit.not_used.empty() ? "; every source tensor is used or left out by a rule"
                                          : "");
  if (every) print_made(out, audit);
  print_list(out, "left out by a rule", audit.left_out);
  print_list(out, "without any account", audit.not_used);
  print_list(out, "several outputs are made of each", audit.used_often);
  print_list(out, "contradictions", audit.faults);
  if (audit.output) print_output(out, *audit.output);
  fmt::format_to(out, "{}", audit.balanced() ? "every account balances" : "it does not balance");
  return text;
}

json::object audit_json(const Audit& audit) {
  json::array files;
  for (const Audit::File& file : audit.files)
    files.push_back(json::object{{"path", file.path},
                                 {"size", file.size},
                                 {"header", file.header},
                                 {"padding", file.padding},
                                 {"data", file.data},
                                 {"tensors", file.tensors}});
  json::object types;
  for (const auto& [type, of] : audit.types)
    types[type] =
        json::object{{"tensors", of.tensors}, {"elements", of.elements}, {"bytes", of.bytes}};
  json::object result{{"files", std::move(files)},
                      {"types", std::move(types)},
                      {"tensors", audit.tensors()},
                      {"elements", audit.elements()},
                      {"bytes", audit.bytes()},
                      {"contradictions", list_json(audit.faults)},
                      {"left_out", list_json(audit.left_out)},
                      {"not_used", list_json(audit.not_used)},
                      {"used_often", list_json(audit.used_often)},
                      {"planned", audit.made.size()},
                      {"outputs", made_json(audit)},
                      {"balanced", audit.balanced()}};
  if (audit.declared_bytes) result["total_size"] = *audit.declared_bytes;
  if (audit.tied) result["tied"] = *audit.tied;
  if (!audit.conversion_error.empty()) result["conversion_error"] = audit.conversion_error;
  if (audit.output)
    result["gguf"] = json::object{{"files", list_json(audit.output->files)},
                                  {"tensors", audit.output->tensors},
                                  {"compared", audit.output->compared},
                                  {"missing", list_json(audit.output->missing)},
                                  {"extra", list_json(audit.output->extra)},
                                  {"other_shape", list_json(audit.output->other_shape)},
                                  {"other_values", list_json(audit.output->other_values)}};
  return result;
}

} // namespace modeld::daemon
