// SPDX-License-Identifier: Apache-2.0
#include "validate/check.hpp"
#include "validate/escape.hpp"
#include "validate/shard_index.hpp"
#include "validate/shard_name.hpp"
#include "validate/sniff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace modeld::validate {
namespace {

constexpr std::string_view k_index = "model.safetensors.index.json";
constexpr std::string_view k_single = "model.safetensors";
constexpr std::string_view k_consolidated = "consolidated.safetensors";

bool in_top_folder(std::string_view path) {
  return path.find('/') == std::string_view::npos;
}

/// An adapter lies beside a model; it is never a part of it.
bool is_adapter(std::string_view path) {
  return path.starts_with("adapter_model");
}

std::vector<std::string> top_files(const FileSet& files, std::string_view suffix) {
  std::vector<std::string> found;
  for (const FileSet::Entry& entry : files.entries())
    if (in_top_folder(entry.path) && entry.path.ends_with(suffix)) found.push_back(entry.path);
  return found;
}

/// The index to go by: the well-known name, else the only one that there is.
std::string find_index(const FileSet& files, WeightLayout layout) {
  const std::string consolidated = std::string(k_consolidated) + ".index.json";
  if (layout == WeightLayout::mistral)
    return files.contains(consolidated) ? consolidated : std::string();
  if (files.contains(k_index)) return std::string(k_index);
  if (files.contains(k_single)) return {};
  auto found = top_files(files, ".safetensors.index.json");
  std::erase(found, consolidated);
  return found.size() == 1 ? found.front() : std::string();
}

/// The one numbered set -00001-of-0000n ... among the names where it is complete, else nothing.
std::vector<std::string> complete_set(const std::vector<std::string>& names) {
  std::map<std::pair<std::string_view, std::uint32_t>, std::vector<std::string>> sets;
  for (const std::string& name : names)
    if (const auto part = numbered_name(name, ".safetensors"))
      sets[{part->prefix, part->total}].push_back(name);
  if (sets.size() != 1) return {};
  const auto& [key, members] = *sets.begin();
  if (members.size() != key.second) return {}; // sorted and distinct, so equal counts mean 1..n
  for (std::size_t i = 0; i < members.size(); ++i)
    if (numbered_name(members[i], ".safetensors")->number != i + 1) return {};
  return members;
}

tl::unexpected<Error> no_weights(const FileSet& files) {
  for (const FileSet::Entry& entry : files.entries()) {
    if (!in_top_folder(entry.path) || !is_unsafe_weight_name(entry.path)) continue;
    return fail(
        Error{Errc::unsupported,
              fmt::format("looking for weights in '{}': only pickled weights are there ({}), "
                          "a pickle is a program and is never run",
                          escape_text(files.name()), quoted(entry.path)),
              "look for a safetensors copy, or convert the pickle in an isolated place",
              {},
              0}
            .with_detail("rule", "PK-01"));
  }
  return fail(Errc::not_found,
              fmt::format("looking for weights in '{}': there is no safetensors file",
                          escape_text(files.name())));
}

/// Rows that only the names on the disk can tell: IX-11 to IX-13.
void check_names(const WeightFiles& selection, Report& report) {
  if (!selection.index.empty() && std::find(selection.unlisted.begin(), selection.unlisted.end(),
                                            k_single) != selection.unlisted.end()) {
    report.warn("IX-11", std::nullopt,
                "model.safetensors lies beside the index, loaders disagree which of them is the "
                "model; the index is used");
  }
  std::vector<std::string> all = selection.files;
  for (const std::string& name : selection.unlisted) {
    report.warn(
        "IX-13", std::nullopt,
        fmt::format("weight file {} does not belong to the model, it is not read", quoted(name)));
    all.push_back(name);
  }
  std::map<std::string_view, std::vector<NumberedName>> sets;
  for (const std::string& name : all)
    if (const auto part = numbered_name(name, ".safetensors")) sets[part->prefix].push_back(*part);
  for (auto& [prefix, parts] : sets) {
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
      return std::pair{a.total, a.number} < std::pair{b.total, b.number};
    });
    const std::uint32_t total = parts.front().total;
    bool good = parts.size() == total;
    for (std::size_t i = 0; good && i < parts.size(); ++i)
      good = parts[i].total == total && parts[i].number == i + 1;
    if (good) continue;
    report.warn(
        "IX-12", std::nullopt,
        fmt::format("files {}-NNNNN-of-MMMMM.safetensors: {} are there, their names tell of "
                    "{}; numbers are missing, repeated or disagree",
                    escape_text(prefix), parts.size(), parts.back().total));
  }
}

std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

void report_missing(const FileSet& files, const std::string& name, Report& report) {
  report.error("IX-06", std::nullopt,
               fmt::format("shard {} is named in the index and is not there", quoted(name)),
               "pull the repository again");
  for (const FileSet::Entry& entry : files.entries()) {
    if (entry.path != name && ascii_lower(entry.path) == ascii_lower(name)) {
      report.warn("IX-15", std::nullopt,
                  fmt::format("the index says {}, the file is called {}: they differ in case only",
                              quoted(name), quoted(entry.path)));
    }
  }
}

std::vector<std::string> unlisted_of(const FileSet& files, const std::vector<std::string>& chosen) {
  std::vector<std::string> rest;
  for (std::string& name : top_files(files, ".safetensors"))
    if (!is_adapter(name) && std::find(chosen.begin(), chosen.end(), name) == chosen.end())
      rest.push_back(std::move(name));
  return rest;
}

/// Tensors that stand in two shards (IX-09) or that the index does not know (IX-08). Returns the
/// bytes of all tensors.
std::uint64_t check_owners(const ShardIndex* index, std::span<const ShardHeader> shards,
                           Report& report) {
  std::uint64_t total = 0;
  std::size_t count = 0;
  for (const ShardHeader& shard : shards)
    count += shard.header->tensors.size();
  std::vector<std::pair<std::string_view, std::string_view>> owners; // tensor, file
  owners.reserve(count);
  NameIndex names;
  names.reserve(count);
  for (const ShardHeader& shard : shards) {
    for (const SafetensorsTensor& tensor : shard.header->tensors) {
      total += tensor.bytes();
      const auto name_at = [&](std::uint32_t i) { return owners[i].first; };
      const auto before =
          names.insert(tensor.name, static_cast<std::uint32_t>(owners.size()), name_at);
      owners.emplace_back(tensor.name, shard.file);
      if (report.full()) continue;
      if (before) {
        report.error("IX-09", std::nullopt,
                     fmt::format("tensor {} stands in {} and in {}", quoted(tensor.name),
                                 quoted(owners[*before].second), quoted(shard.file)));
      }
      if (index != nullptr && index->find(tensor.name) == nullptr) {
        report.warn("IX-08", std::nullopt,
                    fmt::format("tensor {} of {} is not in the index", quoted(tensor.name),
                                quoted(shard.file)));
      }
    }
  }
  return total;
}

/// Fills set.selection and set.index; false where there is nothing to go on with.
bool choose_files(const FileSet& files, WeightLayout layout, const Limits& limits, WeightSet& set,
                  Report& report) {
  if (const std::string path = find_index(files, layout); !path.empty()) {
    report.set_path(path);
    const auto text = files.bytes(path);
    if (!text) {
      report.error("GN-01", std::nullopt, text.error().message);
      return false;
    }
    auto index = check_shard_index(*text, path, report.profile(), limits);
    report.merge(std::move(index.report));
    if (!report.accepted() || !index.value) return false;
    set.selection = {path, index.value->files, unlisted_of(files, index.value->files)};
    set.index = std::move(index.value);
    return true;
  }
  auto selection = select_weight_files(files, layout);
  if (!selection) {
    const Error& error = selection.error();
    report.error(error.code == Errc::unsupported ? "PK-01"
                 : error.code == Errc::conflict  ? "IX-11"
                                                 : "RC-29",
                 std::nullopt, error.message, error.hint);
    return false;
  }
  set.selection = *std::move(selection);
  return true;
}

std::optional<SafetensorsHeader> read_shard(const FileSet& files, const std::string& name,
                                            bool indexed, const Limits& limits, Report& report) {
  const auto bytes = files.bytes(name);
  if (!bytes) {
    if (bytes.error().code == Errc::not_found)
      report_missing(files, name, report);
    else
      report.error("GN-01", std::nullopt, bytes.error().message);
    return std::nullopt;
  }
  Report own(name, report.profile());
  if (report_wrong_content(FileEnds::of(*bytes), ContentKind::safetensors, own)) {
    report.merge(std::move(own));
  } else {
    auto shard = check_safetensors(*bytes, bytes->size(), name, report.profile(), limits);
    const bool good = shard.accepted();
    report.merge(std::move(shard.report));
    if (good) return std::move(shard.value);
  }
  if (indexed)
    report.error("IX-14", std::nullopt, fmt::format("shard {} is malformed", quoted(name)));
  return std::nullopt;
}

} // namespace

Result<WeightFiles> select_weight_files(const FileSet& files, WeightLayout layout) {
  WeightFiles selection;
  selection.index = find_index(files, layout);
  if (!selection.index.empty()) {
    MODELD_ASSIGN(const auto text, files.bytes(selection.index));
    MODELD_ASSIGN(auto index, check_shard_index(text, selection.index, Profile::compat).take());
    selection.files = std::move(index.files);
    selection.unlisted = unlisted_of(files, selection.files);
    return selection;
  }
  std::vector<std::string> candidates = top_files(files, ".safetensors");
  if (candidates.size() > 1) std::erase_if(candidates, is_adapter);
  if (candidates.empty()) return no_weights(files);
  const bool mistral = layout == WeightLayout::mistral;
  const std::string_view single = mistral ? k_consolidated : k_single;
  const std::string_view other = mistral ? "model" : "consolidated";
  const auto is_other = [&](const std::string& name) { return name.starts_with(other); };
  // The two vendors' names side by side are two copies; the layout says which one is meant.
  if (!std::all_of(candidates.begin(), candidates.end(), is_other))
    std::erase_if(candidates, is_other);
  if (candidates.size() == 1) {
    selection.files = candidates;
  } else if (auto set = complete_set(candidates); set.size() == candidates.size()) {
    selection.files = std::move(set);
  } else {
    const bool has_single =
        std::find(candidates.begin(), candidates.end(), single) != candidates.end();
    return fail(
        Error{Errc::conflict,
              fmt::format("looking for weights in '{}': {} safetensors files and no index "
                          "that says which of them are the model ({}{})",
                          escape_text(files.name()), candidates.size(), quoted(candidates.front()),
                          has_single ? ", '" + std::string(single) + "'" : ""),
              "remove the files that do not belong, or add model.safetensors.index.json",
              {},
              0}
            .with_detail("rule", "IX-11"));
  }
  selection.unlisted = unlisted_of(files, selection.files);
  return selection;
}

void check_shards(const ShardIndex& index, std::span<const ShardHeader> shards, Report& report) {
  const std::uint64_t total = check_owners(&index, shards, report);
  for (const ShardIndex::Entry& entry : index.entries) {
    if (entry.file >= index.files.size()) continue;
    const std::string& file = index.files[entry.file];
    const auto shard = std::find_if(shards.begin(), shards.end(),
                                    [&](const ShardHeader& s) { return s.file == file; });
    // A shard that is absent or broken has been reported once, not once for each of its tensors.
    if (shard == shards.end() || shard->header->find(entry.tensor) != nullptr) continue;
    if (report.full()) break;
    report.error("IX-07", entry.offset,
                 fmt::format("tensor {} is not in {}, where the index says it is",
                             quoted(entry.tensor), quoted(file)));
  }
  if (shards.size() == index.files.size() && index.total_size && *index.total_size != total) {
    report.warn(
        "IX-10", std::nullopt,
        fmt::format("total_size is {}, the tensors take {} bytes", *index.total_size, total));
  }
}

Checked<WeightSet> check_weight_set(const FileSet& files, Profile profile, WeightLayout layout,
                                    const Limits& limits) {
  WeightSet set;
  Report report(std::string(files.name()), profile);
  if (!choose_files(files, layout, limits, set, report)) return {std::nullopt, std::move(report)};
  check_names(set.selection, report);
  std::vector<std::string_view> names;
  for (const std::string& name : set.selection.files) {
    auto header = read_shard(files, name, set.index.has_value(), limits, report);
    if (!header) continue;
    set.headers.push_back(*std::move(header));
    names.push_back(name);
  }
  std::vector<ShardHeader> shards;
  for (std::size_t i = 0; i < names.size(); ++i)
    shards.push_back({names[i], &set.headers[i]});
  if (set.index)
    check_shards(*set.index, shards, report);
  else
    check_owners(nullptr, shards, report);
  return {std::move(set), std::move(report)};
}

Result<WeightSet> read_weight_set(const FileSet& files, Profile profile, WeightLayout layout) {
  // The choice first, for its own error codes: absent, ambiguous and pickled weights differ.
  MODELD_TRY(select_weight_files(files, layout));
  return check_weight_set(files, profile, layout).take();
}

} // namespace modeld::validate
