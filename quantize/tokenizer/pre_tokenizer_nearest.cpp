// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/pre_tokenizer_nearest.hpp"

#include "quantize/tokenizer/files.hpp"
#include "schema/embedded_file.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

// Definitions are compared as lists of features: each normalizer and each pre-tokenizer with its
// settings is one, and so is each alternative of a pattern.

namespace modeld::quantize {
namespace {

using Features = std::vector<std::string>;
using boost::json::value;

constexpr unsigned k_max_depth = 32;
constexpr std::size_t k_longest_shown = 80;

/// The alternatives of a pattern outside of groups and classes.
void add_alternatives(std::string_view pattern, Features& out) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\') {
      ++at;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == '|' && depth == 0) {
      out.push_back(fmt::format("pattern {}", pattern.substr(begin, at - begin)));
      begin = at + 1;
    }
  }
  out.push_back(fmt::format("pattern {}", pattern.substr(begin)));
}

void add_features(const value& part, std::string_view kind, Features& out, unsigned depth = 0) {
  const auto* fields = part.if_object();
  if (fields == nullptr || depth > k_max_depth) return;
  for (const std::string_view list : {"normalizers", "pretokenizers"}) {
    const auto* parts = fields->if_contains(list);
    if (parts == nullptr || !parts->is_array()) continue;
    for (const auto& each : parts->get_array()) {
      add_features(each, kind, out, depth + 1);
    }
    return;
  }
  std::string text = fmt::format("{} {}", kind, text_member(*fields, "type").value_or("?"));
  for (const std::string_view name : {"behavior", "invert", "use_regex", "add_prefix_space",
                                      "individual_digits", "lowercase", "prepend_scheme"}) {
    const auto* setting = fields->if_contains(name);
    if (setting != nullptr) text += fmt::format(" {}={}", name, boost::json::serialize(*setting));
  }
  out.push_back(std::move(text));
  const auto* pattern = fields->if_contains("pattern");
  if (pattern == nullptr || !pattern->is_object()) return;
  if (const auto regex = text_member(pattern->get_object(), "Regex")) add_alternatives(*regex, out);
}

Features features_of(const value& normalizer, const value& pre_tokenizer) {
  Features out;
  add_features(normalizer, "normalizer", out);
  add_features(pre_tokenizer, "pre-tokenizer", out);
  std::sort(out.begin(), out.end());
  return out;
}

Features missing_from(const Features& a, const Features& b) {
  Features out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::string shown(const Features& features) {
  if (features.empty()) return "nothing";
  std::string text = features.front().substr(0, k_longest_shown);
  if (features.size() > 1) text += fmt::format(" and {} more", features.size() - 1);
  return text;
}

const boost::json::array& known_definitions() {
  static const value k_table = [] {
    for (const auto& file : tokenizers::files()) {
      if (file.name == "pre_tokenizer_definitions.json") return boost::json::parse(file.text);
    }
    return value(boost::json::object{{"definitions", boost::json::array()}});
  }();
  return k_table.at("definitions").as_array();
}

} // namespace

Nearest nearest_definition(const HfTokenizer& tokenizer) {
  const Features own = features_of(tokenizer.normalizer(), tokenizer.pre_tokenizer());
  Nearest nearest{"default", ""};
  std::size_t least = static_cast<std::size_t>(-1);
  for (const auto& row : known_definitions()) {
    const auto& known = row.as_object();
    const Features theirs = features_of(known.at("normalizer"), known.at("pre_tokenizer"));
    const Features more = missing_from(own, theirs);
    const Features less = missing_from(theirs, own);
    const std::size_t distance = more.size() + less.size();
    if (distance >= least) continue;
    least = distance;
    nearest.label = std::string(known.at("label").as_string());
    nearest.difference = distance == 0 ? ", which has the same definition and another vocabulary"
                                       : fmt::format("; this one has {} where that has {}",
                                                     shown(more), shown(less));
  }
  return nearest;
}

} // namespace modeld::quantize
