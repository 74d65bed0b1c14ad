// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/quantize_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace modeld::quantize {
namespace {

constexpr std::size_t k_override_bytes = 127;

tl::unexpected<Error> wrong(std::string_view option, std::string_view text, std::string cause,
                            std::string hint = {}) {
  return fail(Errc::invalid_argument, fmt::format("reading {} '{}': {}", option, text, cause),
              std::move(hint));
}

std::string all_type_names() {
  std::vector<std::string_view> names;
  for (const TensorTypeInfo& type : all_tensor_types()) {
    names.push_back(type.name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end) return std::nullopt;
  return value;
}

Result<GgufValue> override_value(std::string_view text, std::string_view type,
                                 std::string_view value) {
  constexpr std::string_view k_option = "metadata override";
  if (type == "int") {
    const auto whole = number<std::int64_t>(value);
    if (!whole) return wrong(k_option, text, "no whole number after 'int:'");
    const auto wide = static_cast<std::uint64_t>(*whole);
    return static_cast<std::uint32_t>((*whole < 0 ? 0 - wide : wide) & 0xFFFFFFFFU);
  }
  if (type == "float") {
    const auto real = number<double>(value);
    if (!real) return wrong(k_option, text, "no number after 'float:'");
    return static_cast<float>(*real);
  }
  if (type == "bool") {
    if (value == "true") return true;
    if (value == "false") return false;
    return wrong(k_option, text, fmt::format("'{}' is neither true nor false", value));
  }
  if (type == "str") {
    if (value.size() > k_override_bytes) {
      return wrong(
          k_option, text,
          fmt::format("{} bytes of text; at most {} are allowed", value.size(), k_override_bytes));
    }
    return std::string(value);
  }
  return wrong(k_option, text,
               fmt::format("unknown type '{}'; allowed are int, float, bool, str", type));
}

} // namespace

std::optional<std::string> parse_target_name(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (upper == "COPY") return upper;
  if (const TargetInfo* target = find_target(upper)) return std::string(target->name);
  const auto file_type = number<std::uint32_t>(text);
  if (!file_type) return std::nullopt;
  std::optional<std::string> found; // the last, as Q4_K of Q4_K_M and Q4_K
  for (const std::string_view name : all_target_names()) {
    if (find_target(name)->file_type == *file_type) found = name;
  }
  return found;
}

Result<TensorType> parse_tensor_type(std::string_view text) {
  if (const auto type = tensor_type_from_name(text)) return *type;
  return wrong("tensor type", text, "no such type", "known are " + all_type_names());
}

Result<std::pair<std::string, TensorType>> parse_tensor_rule(std::string_view text) {
  constexpr std::string_view k_option = "tensor type rule";
  constexpr std::string_view k_form = "the form is NAME=TYPE, for example attn_v=q8_0";
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return wrong(k_option, text, "no '='", std::string(k_form));
  if (equals == 0) return wrong(k_option, text, "no tensor name before '='", std::string(k_form));
  if (equals + 1 == text.size()) {
    return wrong(k_option, text, "no type after '='", std::string(k_form));
  }
  std::string pattern(text.substr(0, equals));
  std::transform(pattern.begin(), pattern.end(), pattern.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto type = parse_tensor_type(text.substr(equals + 1));
  if (!type) return fail(std::move(type.error()));
  return std::pair{std::move(pattern), *type};
}

Result<std::vector<std::pair<std::string, TensorType>>> parse_tensor_rules(std::string_view text) {
  constexpr std::string_view k_space = " \t\r\n\v\f";
  std::vector<std::pair<std::string, TensorType>> rules;
  for (std::size_t at = text.find_first_not_of(k_space); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(k_space, at), text.size());
    MODELD_ASSIGN(auto rule, parse_tensor_rule(text.substr(at, end - at)));
    rules.push_back(std::move(rule));
    at = text.find_first_not_of(k_space, end);
  }
  return rules;
}

Result<GgufKv> parse_kv_override(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t colon = equals == std::string_view::npos ? equals : text.find(':', equals);
  if (colon == std::string_view::npos || equals == 0) {
    return wrong("metadata override", text, "not of the form KEY=TYPE:VALUE",
                 "for example general.name=str:My model");
  }
  if (equals > k_override_bytes) {
    return wrong(
        "metadata override", text,
        fmt::format("a key of {} bytes; at most {} are allowed", equals, k_override_bytes));
  }
  const std::string_view type = text.substr(equals + 1, colon - equals - 1);
  MODELD_ASSIGN(GgufValue value, override_value(text, type, text.substr(colon + 1)));
  return GgufKv{std::string(text.substr(0, equals)), std::move(value)};
}

Result<std::vector<int>> parse_layer_list(std::string_view text) {
  std::vector<int> layers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto layer = number<int>(text.substr(at, end - at));
    if (!layer || *layer < 0) {
      return wrong("layer list", text,
                   fmt::format("'{}' is no layer number", text.substr(at, end - at)),
                   "numbers from 0, separated by commas");
    }
    layers.push_back(*layer);
    at = end + 1;
  }
  return layers;
}

} // namespace modeld::quantize
