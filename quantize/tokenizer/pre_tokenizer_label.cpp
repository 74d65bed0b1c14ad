// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/pre_tokenizer_label.hpp"

#include "quantize/encoder/encoder.hpp"
#include "quantize/tokenizer/pre_tokenizer_nearest.hpp"
#include "schema/embedded_file.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::quantize {
namespace {

const boost::json::object& table() {
  static const boost::json::value k_table = [] {
    for (const auto& file : tokenizers::files()) {
      if (file.name == "pre_tokenizers.json") return boost::json::parse(file.text);
    }
    return boost::json::value(boost::json::object());
  }();
  return k_table.get_object();
}

} // namespace

std::string_view check_text() {
  return table().at("check_text").as_string();
}

std::string check_hash(const std::vector<std::uint32_t>& ids) {
  std::string text = "[";
  for (const std::uint32_t id : ids) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(id);
  }
  text += ']';
  return validate::sha256_of(std::as_bytes(std::span(text))).hex();
}

std::optional<std::string> label_of_hash(std::string_view hash) {
  std::optional<std::string> label;
  for (const auto& row : table().at("labels").as_array()) {
    const auto& pair = row.as_array();
    if (pair.at(0).as_string() == hash) label = std::string(pair.at(1).as_string());
  }
  return label;
}

Result<std::string> pre_tokenizer_label(const TokenizerContext& context,
                                        const HfTokenizer& tokenizer) {
  if (!context.request.pre.empty()) return context.request.pre;
  MODELD_ASSIGN(const auto encoder, Encoder::make(tokenizer));
  MODELD_ASSIGN(const auto ids, encoder.encode(check_text(), Encoder::Special::add));
  const std::string hash = check_hash(ids);
  if (auto label = label_of_hash(hash)) return *label;
  const Nearest nearest = nearest_definition(tokenizer);
  return fail(
      Error{Errc::unsupported,
            fmt::format("reading the tokenizer: no known pre-tokenizer gives its ids for "
                        "the check text (hash {}); the nearest is '{}'{}",
                        hash, nearest.label, nearest.difference),
            fmt::format("pass --pre {} if the model was trained with that one", nearest.label),
            {{"check_hash", hash}, {"nearest", nearest.label}},
            0});
}

} // namespace modeld::quantize
