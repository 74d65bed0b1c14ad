// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/read_tokenizers.hpp"

#include <fmt/format.h>

#include <utility>

namespace modeld::quantize {
namespace {

/// [["eos", "'<|endoftext|>'"], ["eot", "107"]]: a special token and an expression.
Result<std::vector<std::pair<std::string, Expr>>>
read_specials(const RuleReader& in, const toml::table& table, std::string_view key) {
  std::vector<std::pair<std::string, Expr>> out;
  const toml::node* node = table.get(key);
  if (node == nullptr) return out;
  if (!node->is_array()) return in.bad(*node, "expected a list");
  for (const toml::node& item : *node->as_array()) {
    const toml::array* pair = item.as_array();
    if (pair == nullptr || pair->size() != 2) return in.bad(item, "expected [type, value]");
    MODELD_ASSIGN(std::string type, in.text((*pair)[0]));
    MODELD_ASSIGN(const std::string words, in.text((*pair)[1]));
    auto value = Expr::parse(words);
    if (!value) return in.bad(item, value.error());
    out.emplace_back(std::move(type), *std::move(value));
  }
  return out;
}

Result<TokenizerPart> read_tokenizer_part(const RuleReader& in, const toml::table& table,
                                          const Architecture& arch, const StandardRules& standard) {
  MODELD_TRY(in.only(table, {"kind", "before", "after", "by_text", "by_id", "second_round", "when",
                             "pad_multiple", "pad_multiple_from_config", "per_layer_vocab_first"}));
  TokenizerPart part;
  MODELD_ASSIGN(const std::string kind, in.text_or(table, "kind", ""));
  const auto known = tokenizer_kind_from_name(kind);
  if (!known) return in.bad(table, fmt::format("there is no tokenizer kind '{}'", kind));
  part.kind = *known;
  MODELD_ASSIGN(part.before, in.keys(table, "before", arch.arch, standard));
  MODELD_ASSIGN(part.after, in.keys(table, "after", arch.arch, standard));
  MODELD_ASSIGN(part.by_text, read_specials(in, table, "by_text"));
  MODELD_ASSIGN(part.by_id, read_specials(in, table, "by_id"));
  MODELD_ASSIGN(part.second_round, read_specials(in, table, "second_round"));
  MODELD_ASSIGN(part.when, in.expression(table, "when"));
  MODELD_ASSIGN(part.pad_multiple, in.expression(table, "pad_multiple"));
  part.pad_multiple_from_config = table["pad_multiple_from_config"].value_or(false);
  part.per_layer_vocab_first = table["per_layer_vocab_first"].value_or(true);
  return part;
}

} // namespace

Result<void> read_tokenizers(const RuleReader& in, const toml::table& root, Architecture& arch,
                             const StandardRules& standard) {
  const toml::node* node = root.get("tokenizer");
  if (arch.kind == FamilyKind::projector) {
    return node == nullptr ? Result<void>() : in.bad(*node, "a projector has no tokenizer");
  }
  if (node == nullptr) return in.bad(root, "a family needs a tokenizer");
  if (node->is_string()) {
    TokenizerPart part;
    const auto known = tokenizer_kind_from_name(*node->value<std::string_view>());
    if (!known) return in.bad(*node, "there is no such tokenizer kind");
    part.kind = *known;
    arch.tokenizers.push_back(std::move(part));
    return {};
  }
  if (const toml::table* table = node->as_table()) {
    MODELD_ASSIGN(TokenizerPart part, read_tokenizer_part(in, *table, arch, standard));
    arch.tokenizers.push_back(std::move(part));
    return {};
  }
  if (!node->is_array()) return in.bad(*node, "expected a kind, a table or a list of tables");
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_table()) return in.bad(item, "expected a table");
    MODELD_ASSIGN(TokenizerPart part, read_tokenizer_part(in, *item.as_table(), arch, standard));
    arch.tokenizers.push_back(std::move(part));
  }
  return {};
}

} // namespace modeld::quantize
