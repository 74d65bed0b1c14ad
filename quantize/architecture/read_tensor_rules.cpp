// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/read_tensor_rules.hpp"

#include "quantize/architecture/check.hpp"
#include "quantize/architecture/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace modeld::quantize {
namespace {

Result<TensorOutput> read_output(const RuleReader& in, const toml::table& table) {
  TensorOutput out;
  const toml::node* to = table.get("to");
  if (to == nullptr) return in.bad(table, "an output needs a name: to = ...");
  MODELD_ASSIGN(const std::string name, in.text(*to));
  MODELD_ASSIGN(out.to, in.pattern(*to, name));
  MODELD_ASSIGN(out.ops, in.ops(table));
  MODELD_ASSIGN(out.type, in.text_or(table, "type", ""));
  if (out.type != "" && out.type != "f32" && out.type != "f16" && out.type != "file") {
    return in.bad(table, fmt::format("type '{}' is none of f32, f16, file", out.type));
  }
  if (const toml::node* suffix = table.get("suffix")) {
    MODELD_ASSIGN(out.suffix, in.text(*suffix));
  }
  MODELD_ASSIGN(out.number, in.expression(table, "number"));
  return out;
}

/// The number of a group, made where it is named for the first time.
std::size_t group_number(Architecture& arch, const std::string& name) {
  const auto at = std::find_if(arch.groups.begin(), arch.groups.end(),
                               [&](const GroupRule& g) { return g.name == name; });
  if (at != arch.groups.end()) return static_cast<std::size_t>(at - arch.groups.begin());
  GroupRule group;
  group.name = name;
  arch.groups.push_back(std::move(group));
  return arch.groups.size() - 1;
}

Result<void> read_tensor(const RuleReader& in, const toml::table& table, Architecture& arch) {
  MODELD_TRY(in.only(table, {"from", "to", "ops", "type", "suffix", "number", "when", "group",
                             "out", "blocks", "unless_equal"}));
  TensorRule rule;
  MODELD_ASSIGN(rule.from, in.patterns(table, "from"));
  if (rule.from.empty()) return in.bad(table, "a tensor needs the source's name: from = ...");
  MODELD_ASSIGN(rule.when, in.expression(table, "when"));
  if (table.contains("to")) {
    MODELD_ASSIGN(TensorOutput one, read_output(in, table));
    rule.outputs.push_back(std::move(one));
  } else if (const toml::node* out = table.get("out"); out != nullptr && out->is_array()) {
    for (const toml::node& item : *out->as_array()) {
      if (!item.is_table()) return in.bad(item, "expected a table");
      MODELD_TRY(in.only(*item.as_table(), {"to", "ops", "type", "suffix", "number", "when"}));
      MODELD_ASSIGN(TensorOutput one, read_output(in, *item.as_table()));
      MODELD_ASSIGN(one.when, in.expression(*item.as_table(), "when"));
      rule.outputs.push_back(std::move(one));
    }
  } else {
    return in.bad(table, "a tensor needs to = ... or out = [...]; a drop stands in 'drop'");
  }
  MODELD_ASSIGN(rule.blocks, in.expression(table, "blocks"));
  MODELD_ASSIGN(rule.unless_equal, in.text_or(table, "unless_equal", ""));
  MODELD_ASSIGN(const std::string group, in.text_or(table, "group", ""));
  if (!group.empty()) rule.group = group_number(arch, group);
  arch.tensors.push_back(std::move(rule));
  return {};
}

Result<void> read_groups(const RuleReader& in, const toml::table& root, Architecture& arch) {
  const toml::node* node = root.get("groups");
  if (node == nullptr) {
    if (arch.groups.empty()) return {};
    return in.bad(root, fmt::format("group '{}' is not described", arch.groups[0].name));
  }
  if (!node->is_table()) return in.bad(*node, "expected a table");
  for (GroupRule& group : arch.groups) {
    const toml::node* one = node->as_table()->get(group.name);
    if (one == nullptr || !one->is_table()) {
      return in.bad(*node, fmt::format("group '{}' is not described", group.name));
    }
    MODELD_TRY(in.only(*one->as_table(), {"count", "join", "stack"}));
    group.stack = (*one->as_table())["stack"].value_or(false);
    MODELD_ASSIGN(group.count, in.expression(*one->as_table(), "count"));
    if (const toml::node* join = one->as_table()->get("join")) {
      group.join = join->value<std::int64_t>();
    }
  }
  if (node->as_table()->size() != arch.groups.size()) {
    return in.bad(*node, "a group that no tensor belongs to");
  }
  return {};
}

Result<void> read_renames(const RuleReader& in, const toml::table& root, Architecture& arch) {
  const toml::node* node = root.get("rename");
  if (node == nullptr) return {};
  if (!node->is_array()) return in.bad(*node, "expected a list");
  for (const toml::node& item : *node->as_array()) {
    const toml::table* table = item.as_table();
    if (table == nullptr) return in.bad(item, "expected a table");
    MODELD_TRY(
        in.only(*table, {"replace", "prefix", "suffix", "add_prefix", "with", "when", "bid"}));
    RenameRule rule;
    using Kind = RenameRule::Kind;
    for (const auto& [name, kind] :
         {std::pair{"replace", Kind::replace}, std::pair{"prefix", Kind::prefix},
          std::pair{"suffix", Kind::suffix}, std::pair{"add_prefix", Kind::add_prefix}}) {
      if (!table->contains(name)) continue;
      rule.kind = kind;
      MODELD_ASSIGN(rule.text, in.text(*table->get(name)));
    }
    if (rule.text.empty()) return in.bad(item, "nothing to rename");
    MODELD_ASSIGN(rule.with, in.text_or(*table, "with", ""));
    MODELD_ASSIGN(rule.when, in.expression(*table, "when"));
    MODELD_ASSIGN(rule.bid, in.expression(*table, "bid"));
    if (rule.bid) {
      if (rule.kind != Kind::prefix) return in.bad(item, "only a prefix takes a number");
      MODELD_TRY(in.pattern(item, rule.text));
      MODELD_TRY(in.pattern(item, rule.with));
    }
    arch.rename.push_back(std::move(rule));
  }
  return {};
}

Result<void> read_drops(const RuleReader& in, const toml::table& root, Architecture& arch) {
  const toml::node* node = root.get("drop");
  if (node == nullptr) return {};
  if (!node->is_array()) return in.bad(*node, "expected a list");
  for (const toml::node& item : *node->as_array()) {
    DropRule rule;
    if (const toml::table* table = item.as_table()) {
      MODELD_TRY(in.only(*table, {"name", "when"}));
      MODELD_ASSIGN(const std::string name, in.text_or(*table, "name", ""));
      MODELD_ASSIGN(rule.name, in.pattern(item, name));
      MODELD_ASSIGN(rule.when, in.expression(*table, "when"));
    } else {
      MODELD_ASSIGN(const std::string name, in.text(item));
      MODELD_ASSIGN(rule.name, in.pattern(item, name));
    }
    arch.drop.push_back(std::move(rule));
  }
  return {};
}

Result<void> read_generated(const RuleReader& in, const toml::table& root, Architecture& arch) {
  const toml::node* node = root.get("generate");
  if (node == nullptr) return {};
  if (!node->is_array()) return in.bad(*node, "expected a list");
  for (const toml::node& item : *node->as_array()) {
    const toml::table* table = item.as_table();
    if (table == nullptr) return in.bad(item, "expected a table");
    MODELD_TRY(in.only(*table, {"to", "by", "when"}));
    GeneratedRule rule;
    MODELD_ASSIGN(const std::string to, in.text_or(*table, "to", ""));
    MODELD_ASSIGN(rule.to, in.pattern(item, to));
    MODELD_ASSIGN(const std::string by, in.text_or(*table, "by", ""));
    auto op = read_op(by);
    if (!op) return in.bad(item, op.error());
    if (!known_generator(op->name)) {
      return in.bad(item, fmt::format("there is no generator '{}'", op->name));
    }
    rule.by = *std::move(op);
    MODELD_ASSIGN(rule.when, in.expression(*table, "when"));
    arch.generated.push_back(std::move(rule));
  }
  return {};
}

} // namespace

Result<void> read_tensor_rules(const RuleReader& in, const toml::table& root, Architecture& arch) {
  const toml::node* tensors = root.get("tensors");
  if (tensors == nullptr || !tensors->is_array()) return in.bad(root, "a family needs tensors");
  for (const toml::node& item : *tensors->as_array()) {
    if (!item.is_table()) return in.bad(item, "expected a table");
    MODELD_TRY(read_tensor(in, *item.as_table(), arch));
  }
  MODELD_TRY(read_groups(in, root, arch));
  MODELD_TRY(read_renames(in, root, arch));
  MODELD_TRY(read_drops(in, root, arch));
  MODELD_ASSIGN(arch.keep, in.patterns(root, "keep"));
  return read_generated(in, root, arch);
}

} // namespace modeld::quantize
