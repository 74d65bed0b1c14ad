// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/weights.hpp"

#include "validate/safetensors.hpp"
#include "validate/shard_index.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace modeld::quantize {
namespace {

constexpr std::string_view k_index = "model.safetensors.index.json";

std::optional<ElementType> element_type(validate::SafetensorsDtype dtype) {
  using D = validate::SafetensorsDtype;
  switch (dtype) {
  case D::boolean:
    return ElementType::boolean;
  case D::u8:
    return ElementType::u8;
  case D::i8:
    return ElementType::i8;
  case D::f8_e5m2:
    return ElementType::f8_e5m2;
  case D::f8_e4m3:
    return ElementType::f8_e4m3;
  case D::f8_e8m0:
    return ElementType::f8_e8m0;
  case D::i16:
    return ElementType::i16;
  case D::f16:
    return ElementType::f16;
  case D::bf16:
    return ElementType::bf16;
  case D::i32:
    return ElementType::i32;
  case D::f32:
    return ElementType::f32;
  case D::i64:
    return ElementType::i64;
  case D::f64:
    return ElementType::f64;
  default:
    return std::nullopt;
  }
}

/// Files of the top folder, sorted.
std::vector<std::string> top_files(const FileSet& files, std::string_view prefix,
                                   std::string_view suffix) {
  std::vector<std::string> out;
  for (const FileSet::Entry& entry : files.entries()) {
    const std::string_view path = entry.path;
    if (path.find('/') == std::string_view::npos && path.starts_with(prefix) &&
        path.ends_with(suffix)) {
      out.push_back(entry.path);
    }
  }
  return out;
}

tl::unexpected<Error> no_weights(const FileSet& files) {
  const auto pickles = top_files(files, "", ".bin");
  if (!pickles.empty()) {
    return fail(Errc::unsupported,
                fmt::format("converting '{}': the only weights are pickles ({})", files.name(),
                            fmt::join(pickles, ", ")),
                "a pickle can run code when it is read; look for a revision of the repository with "
                "safetensors files");
  }
  const auto others = top_files(files, "", ".safetensors");
  return fail(
      Errc::not_found,
      fmt::format("converting '{}': there are no weights: no {} and no model*.safetensors{}",
                  files.name(), k_index,
                  others.empty() ? std::string()
                                 : fmt::format(", only {}", fmt::join(others, ", "))));
}

struct Shard {
  std::string path;
  std::span<const std::byte> bytes;
  validate::SafetensorsHeader header;
};

Result<Shard> open_shard(const FileSet& files, const std::string& path) {
  Shard shard;
  shard.path = path;
  MODELD_ASSIGN(shard.bytes, files.bytes(path));
  MODELD_ASSIGN(shard.header,
                validate::read_safetensors(shard.bytes, path, validate::Profile::compat));
  return shard;
}

/// The index, and that the shards hold what it says.
Result<std::vector<std::string>> listed_files(const FileSet& files,
                                              std::optional<validate::ShardIndex>& index) {
  MODELD_ASSIGN(const auto text, files.bytes(k_index));
  MODELD_ASSIGN(index,
                validate::check_shard_index(text, k_index, validate::Profile::compat).take());
  std::vector<std::string> missing;
  for (const std::string& file : index->files) {
    if (!files.contains(file)) missing.push_back(file);
  }
  if (!missing.empty()) {
    return fail(Errc::not_found,
                fmt::format("converting '{}': {} lists files that are not there: {}", files.name(),
                            k_index, fmt::join(missing, ", ")),
                "complete the download, then try again");
  }
  return index->files;
}

Result<void> check_against(const validate::ShardIndex& index, const std::vector<Shard>& shards) {
  std::vector<validate::ShardHeader> headers;
  headers.reserve(shards.size());
  for (const Shard& shard : shards) {
    headers.push_back({shard.path, &shard.header});
  }
  validate::Report report{std::string(k_index), validate::Profile::strict};
  validate::check_shards(index, headers, report);
  if (auto error = report.first_error()) return fail(*std::move(error));
  std::vector<std::string_view> extra;
  for (const Shard& shard : shards) {
    for (const auto& tensor : shard.header.tensors) {
      if (index.find(tensor.name) == nullptr) extra.push_back(tensor.name);
    }
  }
  if (!extra.empty()) {
    return fail(Errc::conflict,
                fmt::format("reading '{}': the shards hold tensors that it does not "
                            "list: {}",
                            k_index, fmt::join(extra, ", ")));
  }
  return {};
}

Result<void> refuse_twice(const FileSet& files, const std::vector<Shard>& shards) {
  std::map<std::string_view, std::string_view> owners;
  for (const Shard& shard : shards) {
    for (const auto& tensor : shard.header.tensors) {
      const auto [at, fresh] = owners.emplace(tensor.name, shard.path);
      if (fresh) continue;
      return fail(Errc::conflict,
                  fmt::format("converting '{}': tensor '{}' stands in '{}' and in '{}'",
                              files.name(), tensor.name, at->second, shard.path),
                  "remove the file that does not belong to the model, or add an index");
    }
  }
  return {};
}

NamedSource source_of(const Shard& shard, const validate::SafetensorsTensor& tensor) {
  NamedSource source;
  source.name = tensor.name;
  source.stored = {tensor.name};
  if (const auto type = element_type(tensor.dtype)) {
    source.tensor =
        memory_tensor(*type, tensor.shape, shard.header.data(shard.bytes, tensor).data());
  } else {
    source.unreadable = validate::info(tensor.dtype).name;
  }
  return source;
}

void add_tensors(const Shard& shard, std::vector<NamedSource>& out) {
  std::vector<const validate::SafetensorsTensor*> order;
  for (const auto& tensor : shard.header.tensors) {
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const auto* tensor : order) {
    out.push_back(source_of(shard, *tensor));
  }
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

/// A prefix whose {bid} changes: "mtp.layers.0." becomes "model.layers.48.".
Result<void> renumber(const RenameRule& rule, const ModelConfig& config, std::string& name) {
  MODELD_ASSIGN(const NamePattern whole, NamePattern::parse(rule.text + "*"));
  const auto numbers = whole.match(name);
  if (!numbers) return {};
  MODELD_ASSIGN(const NamePattern prefix, NamePattern::parse(rule.text));
  const std::string old = prefix.fill(*numbers);
  if (!name.starts_with(old)) return {}; // a number that is written in another way
  ConfigScope scope(config);
  if (numbers->bid) scope.set("bid", boost::json::value(std::int64_t{*numbers->bid}));
  MODELD_ASSIGN(const auto value, rule.bid->evaluate(scope));
  const auto number = as_integer(value);
  if (!number || !std::in_range<std::uint32_t>(*number)) {
    return fail(Errc::malformed,
                fmt::format("renaming '{}': '{}' gives {}, expected a block's number", name,
                            rule.bid->text(), boost::json::serialize(value)));
  }
  MODELD_ASSIGN(const NamePattern with, NamePattern::parse(rule.with));
  NameNumbers fresh;
  fresh.bid = static_cast<std::uint32_t>(*number);
  name = with.fill(fresh) + name.substr(old.size());
  return {};
}

Result<void> rename_one(const RenameRule& rule, const ModelConfig& config, std::string& name) {
  if (rule.bid) return renumber(rule, config, name);
  switch (rule.kind) {
  case RenameRule::Kind::replace:
    replace_all(name, rule.text, rule.with);
    break;
  case RenameRule::Kind::prefix:
    if (name.starts_with(rule.text)) name = rule.with + name.substr(rule.text.size());
    break;
  case RenameRule::Kind::suffix:
    if (name.ends_with(rule.text)) {
      name = name.substr(0, name.size() - rule.text.size()) + rule.with;
    }
    break;
  case RenameRule::Kind::add_prefix:
    name = rule.text + name;
    break;
  }
  return {};
}

bool matches_any(const std::vector<NamePattern>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const NamePattern& pattern) { return pattern.match(name).has_value(); });
}

/// Conditions that hold for the whole model, not for a block.
Result<std::vector<const RenameRule*>> renames_in_force(const ModelConfig& config) {
  std::vector<const RenameRule*> out;
  const ConfigScope scope(config);
  for (const RenameRule& rule : config.family->rename) {
    if (rule.when) {
      MODELD_ASSIGN(const auto holds, rule.when->evaluate(scope));
      if (!truthy(holds)) continue;
    }
    out.push_back(&rule);
  }
  return out;
}

/// Everything else is the text model's.
bool belongs_to_tower(const Architecture& family, const std::string& name) {
  if (name.find("language_model.") != std::string::npos) return false;
  return family.keep.empty() || matches_any(family.keep, name);
}

Result<bool> dropped(const ModelConfig& config, const std::string& name) {
  for (const DropRule& rule : config.family->drop) {
    const auto numbers = rule.name.match(name);
    if (!numbers) continue;
    if (!rule.when) return true;
    ConfigScope scope(config);
    if (numbers->bid) scope.set("bid", boost::json::value(std::int64_t{*numbers->bid}));
    MODELD_ASSIGN(const auto holds, rule.when->evaluate(scope));
    if (truthy(holds)) return true;
  }
  return false;
}

} // namespace

const NamedSource* Weights::find(std::string_view name) const {
  const auto at = std::find_if(tensors.begin(), tensors.end(),
                               [name](const NamedSource& t) { return t.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

Result<Weights> open_weights(const FileSet& files, WeightForm form) {
  Weights weights;
  std::optional<validate::ShardIndex> index;
  std::vector<std::string> paths;
  if (form == WeightForm::mistral) {
    paths = top_files(files, "consolidated", ".safetensors");
    if (paths.empty()) {
      return fail(Errc::not_found,
                  fmt::format("converting '{}': there are no weights: no consolidated*.safetensors",
                              files.name()));
    }
  } else if (files.contains(k_index)) {
    MODELD_ASSIGN(paths, listed_files(files, index));
  } else {
    paths = top_files(files, "model", ".safetensors");
  }
  if (paths.empty()) return no_weights(files);
  for (std::string& path : top_files(files, "", ".safetensors")) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) {
      weights.unlisted.push_back(std::move(path));
    }
  }
  std::vector<Shard> shards;
  for (const std::string& path : paths) {
    MODELD_ASSIGN(Shard shard, open_shard(files, path));
    shards.push_back(std::move(shard));
  }
  if (index) MODELD_TRY(check_against(*index, shards));
  MODELD_TRY(refuse_twice(files, shards));
  for (const Shard& shard : shards) {
    add_tensors(shard, weights.tensors);
  }
  return weights;
}

Result<std::vector<NamedSource>> open_weight_file(const FileSet& files, const std::string& path) {
  MODELD_ASSIGN(const Shard shard, open_shard(files, path));
  std::vector<const validate::SafetensorsTensor*> order;
  for (const auto& tensor : shard.header.tensors) {
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->begin < b->begin; });
  std::vector<NamedSource> tensors;
  for (const auto* tensor : order) {
    tensors.push_back(source_of(shard, *tensor));
  }
  return tensors;
}

Result<SourcePtr> open_module_weight(const FileSet& files, const std::string& folder) {
  const std::string path = folder + "/model.safetensors";
  MODELD_ASSIGN(const auto tensors, open_weight_file(files, path));
  for (const NamedSource& source : tensors) {
    if (source.name == "linear.weight" && source.tensor != nullptr) return source.tensor;
  }
  return fail(
      Errc::malformed,
      fmt::format("reading '{}': there is no tensor 'linear.weight' that can be read", path));
}

Result<void> rename_weights(Weights& weights, const ModelConfig& config,
                            const ArchitectureSet& architectures) {
  MODELD_ASSIGN(const auto renames, renames_in_force(config));
  const bool projector = config.family->kind == FamilyKind::projector;
  std::vector<NamedSource> kept;
  std::set<std::string> names;
  for (NamedSource& source : weights.tensors) {
    std::string name = source.name;
    for (const RenameRule* rule : renames) {
      MODELD_TRY(rename_one(*rule, config, name));
    }
    MODELD_ASSIGN(const bool drop, dropped(config, name));
    if (drop || (projector ? !belongs_to_tower(*config.family, name)
                           : matches_any(architectures.standard().drop_text, name))) {
      weights.dropped.push_back(source.name);
      continue;
    }
    if (source.tensor == nullptr) {
      return fail(Errc::unsupported,
                  fmt::format("reading tensor '{}': element type {} cannot be converted",
                              source.name, source.unreadable));
    }
    replace_all(name, "e_score_correction_bias", "e_score_correction.bias");
    replace_all(name, "language_model.", "");
    if (matches_any(architectures.standard().drop_any, name)) {
      weights.dropped.push_back(source.name);
      continue;
    }
    if (!names.insert(name).second) {
      return fail(Errc::conflict, fmt::format("reading tensor '{}': another tensor comes out under "
                                              "the name '{}' too",
                                              source.name, name));
    }
    source.name = std::move(name);
    kept.push_back(std::move(source));
  }
  weights.tensors = std::move(kept);
  return {};
}

} // namespace modeld::quantize
