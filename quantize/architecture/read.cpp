// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/read.hpp"

#include "quantize/architecture/check.hpp"
#include "quantize/architecture/keys.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace modeld::quantize {
namespace {

constexpr std::array<std::pair<std::string_view, FamilyKind>, 3> k_kinds{
    {{"model", FamilyKind::model},
     {"adapter", FamilyKind::adapter},
     {"mmproj", FamilyKind::projector}}};

/// Says which file and line an error is about.
class Reader {
public:
  explicit Reader(std::string_view file) : file_(file) {}

  tl::unexpected<Error> bad(const toml::node& at, std::string_view why) const {
    return fail(Errc::internal,
                fmt::format("reading '{}', line {}: {}", file_, at.source().begin.line, why));
  }
  tl::unexpected<Error> bad(const toml::node& at, const Error& error) const {
    return bad(at, error.message);
  }

  /// Nothing else may stand in a table.
  Result<void> only(const toml::table& table,
                    std::initializer_list<std::string_view> allowed) const {
    for (const auto& [key, value] : table) {
      if (std::find(allowed.begin(), allowed.end(), key.str()) == allowed.end()) {
        return bad(value, fmt::format("there is no key '{}' here; allowed are {}", key.str(),
                                      fmt::join(allowed, ", ")));
      }
    }
    return {};
  }

  Result<std::string> text(const toml::node& node) const {
    if (const auto value = node.value<std::string>(); node.is_string() && value) return *value;
    return bad(node, "expected a text");
  }

  Result<std::string> text_or(const toml::table& table, std::string_view key,
                              std::string_view fallback) const {
    const toml::node* node = table.get(key);
    return node == nullptr ? Result<std::string>(std::string(fallback)) : text(*node);
  }

  /// A list of texts; one text stands for a list of one; absent for an empty one.
  Result<std::vector<std::string>> texts(const toml::table& table, std::string_view key) const {
    std::vector<std::string> out;
    const toml::node* node = table.get(key);
    if (node == nullptr) return out;
    if (const toml::array* list = node->as_array()) {
      for (const toml::node& item : *list) {
        MODELD_ASSIGN(std::string one, text(item));
        out.push_back(std::move(one));
      }
      return out;
    }
    MODELD_ASSIGN(std::string one, text(*node));
    out.push_back(std::move(one));
    return out;
  }

  Result<std::optional<Expr>> expression(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::optional<Expr>();
    if (const auto number = node->value_exact<std::int64_t>()) {
      return std::optional<Expr>(*Expr::parse(std::to_string(*number)));
    }
    MODELD_ASSIGN(const std::string words, text(*node));
    auto parsed = Expr::parse(words);
    if (!parsed) return bad(*node, parsed.error());
    return std::optional<Expr>(*std::move(parsed));
  }

  Result<NamePattern> pattern(const toml::node& node, const std::string& words) const {
    auto parsed = NamePattern::parse(words);
    if (!parsed) return bad(node, parsed.error());
    return parsed;
  }

  Result<std::vector<NamePattern>> patterns(const toml::table& table, std::string_view key) const {
    std::vector<NamePattern> out;
    MODELD_ASSIGN(const auto all, texts(table, key));
    for (const std::string& one : all) {
      MODELD_ASSIGN(NamePattern parsed, pattern(*table.get(key), one));
      out.push_back(std::move(parsed));
    }
    return out;
  }

  Result<std::vector<KeyRule>> keys(const toml::table& table, std::string_view key,
                                    std::string_view arch, const StandardRules& standard) const {
    std::vector<KeyRule> out;
    const toml::node* node = table.get(key);
    if (node == nullptr) return out;
    const toml::array* list = node->as_array();
    if (list == nullptr) return bad(*node, "expected a list");
    for (const toml::node& item : *list) {
      MODELD_ASSIGN(const std::string line, text(item));
      if (auto read = read_key_line(line, arch, standard.key_groups, out); !read) {
        return bad(item, read.error());
      }
    }
    return out;
  }

  Result<std::vector<OpRule>> ops(const toml::table& table) const {
    std::vector<OpRule> out;
    MODELD_ASSIGN(const auto lines, texts(table, "ops"));
    for (const std::string& line : lines) {
      auto op = read_op(line);
      if (!op) return bad(*table.get("ops"), op.error());
      if (!known_op(op->name)) {
        return bad(*table.get("ops"), fmt::format("there is no operation '{}'", op->name));
      }
      out.push_back(*std::move(op));
    }
    return out;
  }

  /// Values and "= expression" texts.
  Result<std::vector<Assignment>> defaults(const toml::table& table) const {
    std::vector<Assignment> out;
    for (const auto& [key, value] : table) {
      MODELD_ASSIGN(Expr parsed, default_value(value));
      out.push_back({std::string(key.str()), std::move(parsed)});
    }
    return out;
  }

private:
  Result<Expr> default_value(const toml::node& value) const {
    std::string words;
    if (const auto s = value.value_exact<std::string>()) {
      words = s->starts_with("= ") ? s->substr(2) : fmt::format("'{}'", *s);
    } else if (const auto b = value.value_exact<bool>()) {
      words = *b ? "true" : "false";
    } else if (const auto i = value.value_exact<std::int64_t>()) {
      words = fmt::format("{}", *i);
    } else if (const auto d = value.value_exact<double>()) {
      words = fmt::format("float({})", *d);
    } else {
      return bad(value, "expected a number, a truth value or a text");
    }
    auto parsed = Expr::parse(words);
    if (!parsed) return bad(value, parsed.error());
    return parsed;
  }

  std::string file_;
};

Result<TensorOutput> read_output(const Reader& in, const toml::table& table) {
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

Result<void> read_tensor(const Reader& in, const toml::table& table, Architecture& arch) {
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

Result<void> read_groups(const Reader& in, const toml::table& root, Architecture& arch) {
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

Result<void> read_renames(const Reader& in, const toml::table& root, Architecture& arch) {
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

Result<void> read_drops(const Reader& in, const toml::table& root, Architecture& arch) {
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

Result<void> read_generated(const Reader& in, const toml::table& root, Architecture& arch) {
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

/// [["eos", "'<|endoftext|>'"], ["eot", "107"]]: a special token and an expression.
Result<std::vector<std::pair<std::string, Expr>>>
read_specials(const Reader& in, const toml::table& table, std::string_view key) {
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

Result<TokenizerPart> read_tokenizer_part(const Reader& in, const toml::table& table,
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

Result<void> read_tokenizers(const Reader& in, const toml::table& root, Architecture& arch,
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

Result<void> read_defaults(const Reader& in, const toml::table& root, Architecture& arch) {
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

Result<void> read_head(const Reader& in, const toml::table& root, Architecture& arch) {
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

Result<toml::table> parse(std::string_view file, std::string_view text) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    return fail(Errc::internal, fmt::format("reading '{}', line {}: {}", file,
                                            error.source().begin.line, error.description()));
  }
}

} // namespace

Result<StandardRules> read_standard_rules(std::string_view text) {
  StandardRules rules;
  const Reader in(k_standard_file);
  MODELD_ASSIGN(const toml::table root, parse(k_standard_file, text));
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
  const Reader in(file);
  MODELD_ASSIGN(const toml::table root, parse(file, text));
  MODELD_TRY(read_head(in, root, arch));
  MODELD_ASSIGN(arch.early, in.keys(root, "early", arch.arch, standard));
  MODELD_ASSIGN(arch.keys, in.keys(root, "keys", arch.arch, standard));
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
  MODELD_TRY(read_generated(in, root, arch));
  MODELD_TRY(read_tokenizers(in, root, arch, standard));
  MODELD_TRY(read_defaults(in, root, arch));
  MODELD_TRY(check_architecture(arch));
  return arch;
}

} // namespace modeld::quantize
