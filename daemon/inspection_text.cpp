// SPDX-License-Identifier: Apache-2.0
#include "daemon/inspection.hpp"
#include "daemon/terminal_text.hpp"
#include "validate/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace modeld::daemon {
namespace {

using validate::GgufType;
using validate::GgufValueView;
using Out = std::back_insert_iterator<std::string>;

constexpr std::size_t k_short_text = 60;
constexpr std::uint64_t k_short_list = 3;

std::string scalar(const GgufValueView& value) {
  if (const auto flag = value.as_bool()) return *flag ? "true" : "false";
  if (value.type == GgufType::u64) return std::to_string(*value.as_u64());
  if (const auto number = value.as_i64()) return std::to_string(*number);
  if (value.type == GgufType::f32) return fmt::format("{}", static_cast<float>(*value.as_f64()));
  if (const auto number = value.as_f64()) return fmt::format("{}", *number);
  return "?";
}

std::string text(std::string_view value, bool full) {
  return full ? terminal_lines(value) : validate::escape_text(value, k_short_text);
}

std::string list(const GgufValueView& value, std::uint64_t shown) {
  std::string out = "[";
  std::uint64_t i = 0;
  const auto separate = [&] {
    if (i++ > 0) out += ", ";
  };
  if (value.element == GgufType::string) {
    for (const std::string_view item : value.strings()) {
      if (i == shown) break;
      separate();
      out += "'" + validate::escape_text(item, k_short_text) + "'";
    }
  } else {
    while (i < value.count && i < shown) {
      const std::uint64_t at = i;
      separate();
      out += scalar(value.at(at));
    }
  }
  if (value.count > shown) out += ", ...";
  return out + "]";
}

std::string value_text(const Inspection::Item& item, bool full) {
  if (const auto* plain = std::get_if<std::string>(&item.value)) return text(*plain, full);
  const auto& view = std::get<GgufValueView>(item.value);
  if (view.is_array()) return list(view, full ? view.count : k_short_list);
  if (const auto string = view.as_string()) return text(*string, full);
  return scalar(view);
}

void print_tensors(const Inspection& file, Out out) {
  std::size_t width = 4;
  for (const Inspection::Tensor& tensor : file.tensors)
    width = std::max(width, std::min<std::size_t>(tensor.name.size(), 64));
  fmt::format_to(out, "\ntensors ({})\n", file.tensors.size());
  for (const Inspection::Tensor& tensor : file.tensors) {
    fmt::format_to(out, "  {:<{}}  {:<8} {:<24} at {:<14} {} bytes\n", terminal_text(tensor.name),
                   width, tensor.type, fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
                   tensor.offset, tensor.bytes);
  }
}

void print_totals(const Inspection& file, Out out) {
  Inspection::OfType all;
  fmt::format_to(out, "\ntypes\n");
  for (const auto& [type, of] : file.types()) {
    fmt::format_to(out, "  {:<12} {:>6} tensors  {:>16} elements  {:>16} bytes\n", type, of.tensors,
                   of.elements, of.bytes);
    all.tensors += of.tensors;
    all.elements += of.elements;
    all.bytes += of.bytes;
  }
  fmt::format_to(out, "  {:<12} {:>6} tensors  {:>16} elements  {:>16} bytes", "total", all.tensors,
                 all.elements, all.bytes);
  if (all.elements > 0)
    fmt::format_to(out, "  {:.4f} bits a weight",
                   8.0 * static_cast<double>(all.bytes) / static_cast<double>(all.elements));
  fmt::format_to(out, "\n");
}

/// The few keys that people look a tokenizer up for.
void print_tokenizer(const Inspection& file, Out out) {
  if (file.find("tokenizer.ggml.model") == nullptr) return;
  fmt::format_to(out, "\ntokenizer\n");
  for (const char* name :
       {"model", "pre", "tokens", "merges", "bos_token_id", "eos_token_id", "unknown_token_id",
        "padding_token_id", "add_bos_token", "add_eos_token"}) {
    const auto* item = file.find(std::string("tokenizer.ggml.") + name);
    if (item == nullptr) continue;
    const auto* view = std::get_if<GgufValueView>(&item->value);
    fmt::format_to(out, "  {:<18} {}\n", name,
                   view != nullptr && view->is_array() ? std::to_string(view->count)
                                                       : value_text(*item, false));
  }
  if (const auto* chat = file.find("tokenizer.chat_template")) {
    const auto& view = std::get<GgufValueView>(chat->value);
    fmt::format_to(out, "  {:<18} {} bytes (inspect --key tokenizer.chat_template)\n",
                   "chat template", view.bytes.size());
  }
}

} // namespace

std::string inspection_value(const Inspection::Item& item) {
  const auto* view = std::get_if<GgufValueView>(&item.value);
  if (view == nullptr || !view->is_array()) return value_text(item, true);
  std::string out;
  if (view->element == GgufType::string) {
    for (const std::string_view line : view->strings())
      out += terminal_text(line) + "\n";
  } else {
    for (std::uint64_t i = 0; i < view->count; ++i)
      out += scalar(view->at(i)) + "\n";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string inspection_text(const Inspection& file, bool full) {
  std::string text;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "{}: {}, {} bytes", terminal_text(file.path), file.format, file.file_bytes);
  for (const auto& [name, value] : file.head)
    fmt::format_to(out, ", {} {}", name, value);
  fmt::format_to(out, ", data at {}\n\nmetadata ({})\n", file.data_start, file.metadata.size());
  for (const Inspection::Item& item : file.metadata) {
    fmt::format_to(out, "  {:<44} {:<8} {}\n", terminal_text(item.key), item.type(),
                   value_text(item, full));
  }
  print_tokenizer(file, out);
  print_tensors(file, out);
  print_totals(file, out);
  text.pop_back();
  return text;
}

} // namespace modeld::daemon
