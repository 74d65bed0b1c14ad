// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace modeld::quantize {
namespace {

tl::unexpected<Error> bad(const Architecture& arch, std::string why) {
  return fail(Errc::internal, fmt::format("checking '{}': {}", arch.file, why));
}

/// A rule with a condition may share a name with another one; only one of them holds for a model.
Result<void> check_sources(const Architecture& arch) {
  const NameNumbers sample{0, 1};
  for (std::size_t a = 0; a < arch.tensors.size(); ++a) {
    for (const NamePattern& name : arch.tensors[a].from) {
      for (std::size_t b = a + 1; b < arch.tensors.size(); ++b) {
        if (arch.tensors[a].when || arch.tensors[b].when) continue;
        for (const NamePattern& other : arch.tensors[b].from) {
          if (other.match(name.fill(sample)) || name.match(other.fill(sample))) {
            return bad(arch, fmt::format("tensors '{}' and '{}' take the same names", name.text(),
                                         other.text()));
          }
        }
      }
    }
  }
  return {};
}

Result<void> check_outputs(const Architecture& arch) {
  for (const TensorRule& rule : arch.tensors) {
    const bool bid = std::all_of(rule.from.begin(), rule.from.end(),
                                 [](const NamePattern& name) { return name.has_bid(); });
    const bool xid = std::all_of(rule.from.begin(), rule.from.end(),
                                 [](const NamePattern& name) { return name.has_xid(); });
    for (const TensorOutput& out : rule.outputs) {
      const bool numbered = bid || rule.blocks || out.number;
      if ((out.to.has_bid() && !numbered) || (out.to.has_xid() && !xid)) {
        return bad(arch, fmt::format("output '{}' has a number that its source '{}' has not",
                                     out.to.text(), rule.from[0].text()));
      }
    }
    if (rule.group && xid != arch.groups[*rule.group].count.has_value()) {
      return bad(arch, fmt::format("group '{}' needs a count where its sources have {{xid}}, and "
                                   "only there",
                                   arch.groups[*rule.group].name));
    }
    if (!rule.group && xid && !rule.outputs.empty() && !rule.outputs[0].to.has_xid()) {
      return bad(arch, fmt::format("source '{}' has {{xid}} but no group", rule.from[0].text()));
    }
  }
  return {};
}

void add_names(const std::optional<Expr>& expr, std::set<std::string>& names) {
  if (!expr) return;
  const auto all = expr->names();
  names.insert(all.begin(), all.end());
}

std::set<std::string> names_used(const Architecture& arch) {
  std::set<std::string> names;
  const auto add_op = [&names](const OpRule& op) {
    for (const Expr& argument : op.arguments) {
      add_names(argument, names);
    }
  };
  for (const Assignment& set : arch.prepare) {
    add_names(set.value, names);
  }
  const auto add_keys = [&names](const std::vector<KeyRule>& keys) {
    for (const KeyRule& key : keys) {
      add_names(key.value, names);
      add_names(key.when, names);
    }
  };
  add_keys(arch.early);
  add_keys(arch.keys);
  for (const TensorRule& rule : arch.tensors) {
    add_names(rule.when, names);
    add_names(rule.blocks, names);
    for (const TensorOutput& out : rule.outputs) {
      add_names(out.when, names);
      add_names(out.number, names);
      std::for_each(out.ops.begin(), out.ops.end(), add_op);
    }
  }
  for (const DropRule& drop : arch.drop) {
    add_names(drop.when, names);
  }
  for (const RenameRule& rename : arch.rename) {
    add_names(rename.when, names);
    add_names(rename.bid, names);
  }
  for (const GroupRule& group : arch.groups) {
    add_names(group.count, names);
  }
  for (const GeneratedRule& generated : arch.generated) {
    add_names(generated.when, names);
    add_op(generated.by);
  }
  for (const TokenizerPart& part : arch.tokenizers) {
    add_names(part.when, names);
    add_names(part.pad_multiple, names);
    add_keys(part.before);
    add_keys(part.after);
  }
  return names;
}

/// Read by the converter and the tokenizer, not by rules.
constexpr std::string_view k_read_elsewhere[] = {"block_count", "vocab_size", "rope_parameters",
                                                 "pad_vocab_size_multiple"};

Result<void> check_assignments(const Architecture& arch) {
  const std::set<std::string> used = names_used(arch);
  const auto check = [&](std::string name) -> Result<void> {
    name.resize(std::min(name.find('.'), name.size()));
    const bool elsewhere = std::find(std::begin(k_read_elsewhere), std::end(k_read_elsewhere),
                                     name) != std::end(k_read_elsewhere);
    if (used.contains(name) || elsewhere) return {};
    return bad(arch, fmt::format("'{}' is set and never read", name));
  };
  for (const Assignment& set : arch.prepare) {
    MODELD_TRY(check(set.name));
  }
  for (const auto* keys : {&arch.early, &arch.keys}) {
    for (const KeyRule& key : *keys) {
      if (key.kind == KeyRule::Kind::let) MODELD_TRY(check(key.name));
    }
  }
  return {};
}

} // namespace

Result<void> check_architecture(const Architecture& arch) {
  MODELD_TRY(check_sources(arch));
  MODELD_TRY(check_outputs(arch));
  MODELD_TRY(check_assignments(arch));
  if (!arch.tokenizers.empty() && arch.tokenizers.back().when) {
    return bad(arch, "the last tokenizer may have no condition");
  }
  return {};
}

} // namespace modeld::quantize
