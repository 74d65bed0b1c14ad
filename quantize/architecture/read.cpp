// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/read.hpp"

#include "quantize/architecture/check.hpp"
#include "quantize/architecture/keys.hpp"
#include "quantize/architecture/read_tensor_rules.hpp"
#include "quantize/architecture/read_tokenizers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace modeld::quantize {
namespace {

constexpr std::array<std::pair<std::string_view, FamilyKind>, 3> k_kinds{
    {{"model", FamilyKind::model},
     {"adapter", FamilyKind::adapter},
     {"mmproj", FamilyKind::projector}}};

Result<void> read_defaults(const RuleReader& in, const toml::table& root, Architecture& arch) {
  const toml::node* node = root.get("defaults");
  if (node == nullptr) return {};
  if (!node->is_table()) return in.bad(*node, "expected tables by model_type");
  for (const auto& [model_type, table] : *node->as_table()) {
    if (!table.is_table()) return in.bad(table, "expected a table");
    MODELD_ASSIGN(auto all, in.defaults(*table.as_table()));
    arch.defaults.emplace(std::string(model_type.str()), std::move(all));
  }
  return {};
}

Result<void> read_head(const RuleReader& in, const toml::table& root, Architecture& arch) {
  MODELD_TRY(in.only(root, {"arch", "title", "classes", "when", "config", "options", "type",
                            "adapters", "prepare", "early", "keys", "rename", "drop", "keep",
                            "tensors", "groups", "generate", "tokenizer", "defaults"}));
  MODELD_ASSIGN(arch.arch, in.text_or(root, "arch", ""));
  MODELD_ASSIGN(arch.title, in.text_or(root, "title", ""));
  MODELD_ASSIGN(arch.classes, in.texts(root, "classes"));
  if (arch.arch.empty() || arch.title.empty() || arch.classes.empty()) {
    return in.bad(root, "a family needs arch, title and classes");
  }
  MODELD_ASSIGN(arch.when, in.expression(root, "when"));
  MODELD_ASSIGN(const std::string config, in.text_or(root, "config", "class"));
  if (config != "class" && config != "raw") return in.bad(root, "config is neither class nor raw");
  arch.raw_config = config == "raw";
  MODELD_ASSIGN(arch.options, in.texts(root, "options"));
  for (const std::string& option : arch.options) {
    if (option != "mtp" && option != "dense_modules" && option != "fuse_gate_up_exps" &&
        option != "separate_gate_up_exps") {
      return in.bad(*root.get("options"),
                    "options are mtp, dense_modules, fuse_gate_up_exps and separate_gate_up_exps");
    }
  }
  MODELD_ASSIGN(const std::string type, in.text_or(root, "type", "model"));
  const auto kind = std::find_if(k_kinds.begin(), k_kinds.end(),
                                 [&type](const auto& known) { return known.first == type; });
  if (kind == k_kinds.end()) return in.bad(root, "type is none of model, adapter, mmproj");
  arch.kind = kind->second;
  MODELD_ASSIGN(arch.adapters, in.expression(root, "adapters"));
  MODELD_ASSIGN(const auto lines, in.texts(root, "prepare"));
  for (const std::string& line : lines) {
    auto set = read_assignment(line);
    if (!set) return in.bad(*root.get("prepare"), set.error());
    arch.prepare.push_back(*std::move(set));
  }
  return {};
}

} // namespace

Result<StandardRules> read_standard_rules(std::string_view text) {
  StandardRules rules;
  const RuleReader in(k_standard_file);
  MODELD_ASSIGN(const toml::table root, parse_rules(k_standard_file, text));
  MODELD_TRY(in.only(root, {"keys", "drop_text", "drop_any", "defaults", "layer_types_checked"}));
  if (const toml::node* keys = root.get("keys"); keys != nullptr && keys->is_table()) {
    for (const auto& [name, unused] : *keys->as_table()) {
      MODELD_ASSIGN(auto list, in.keys(*keys->as_table(), name.str(), "", rules));
      for (KeyRule& rule : list) {
        if (rule.name.starts_with('.')) rule.name.erase(0, 1);
      }
      rules.key_groups.emplace(std::string(name.str()), std::move(list));
    }
  }
  MODELD_ASSIGN(rules.drop_text, in.patterns(root, "drop_text"));
  MODELD_ASSIGN(rules.layer_types_checked, in.texts(root, "layer_types_checked"));
  MODELD_ASSIGN(rules.drop_any, in.patterns(root, "drop_any"));
  if (const toml::node* node = root.get("defaults"); node != nullptr && node->is_table()) {
    MODELD_ASSIGN(rules.defaults, in.defaults(*node->as_table()));
  }
  return rules;
}

Result<Architecture> read_architecture(std::string_view file, std::string_view text,
                                       const StandardRules& standard) {
  Architecture arch;
  arch.file = file;
  const RuleReader in(file);
  MODELD_ASSIGN(const toml::table root, parse_rules(file, text));
  MODELD_TRY(read_head(in, root, arch));
  MODELD_ASSIGN(arch.early, in.keys(root, "early", arch.arch, standard));
  MODELD_ASSIGN(arch.keys, in.keys(root, "keys", arch.arch, standard));
  MODELD_TRY(read_tensor_rules(in, root, arch));
  MODELD_TRY(read_tokenizers(in, root, arch, standard));
  MODELD_TRY(read_defaults(in, root, arch));
  MODELD_TRY(check_architecture(arch));
  return arch;
}

} // namespace modeld::quantize
