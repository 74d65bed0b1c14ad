// SPDX-License-Identifier: Apache-2.0
#include "validate/model_tensors.hpp"

#include "schema/embedded_file.hpp"

#include <algorithm>
#include <charconv>
#include <set>

namespace modeld::validate {
namespace {

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The words of a line one after the other; empty at its end.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::string_view table_text() {
  for (const EmbeddedFile& file : model_tables::files())
    if (file.name == "gguf_tensors.txt") return file.text;
  return {};
}

bool names(std::string_view heading, std::string_view architecture) {
  if (!heading.starts_with('[') || !heading.ends_with(']')) return false;
  heading = heading.substr(1, heading.size() - 2);
  while (!heading.empty())
    if (next_word(heading) == architecture) return true;
  return false;
}

} // namespace

std::optional<ModelTensors> ModelTensors::of(std::string_view architecture) {
  std::string_view text = table_text();
  while (!text.empty() && !names(next_line(text), architecture)) {
  }
  if (text.empty() || architecture.empty()) return std::nullopt;
  ModelTensors table;
  bool in_blocks = false;
  for (std::string_view line = next_line(text); !line.empty(); line = next_line(text)) {
    if (line == "blocks")
      in_blocks = true;
    else
      table.read_line(line, in_blocks);
  }
  return table;
}

std::string ModelTensors::take_name(std::string_view word, bool in_blocks) {
  const std::size_t colon = std::min(word.find(':'), word.size());
  const std::string_view dims = word.substr(std::min(colon + 1, word.size()));
  std::string name(word.substr(0, colon));
  if (name.starts_with('='))
    name.erase(0, 1);
  else if (!name.ends_with(".bias"))
    name += ".weight";
  dims_[in_blocks ? 1 : 0].emplace(name, dims);
  return name;
}

void ModelTensors::read_line(std::string_view line, bool in_blocks) {
  Need need;
  need.in_blocks = in_blocks;
  need.alternatives.emplace_back();
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    if (word == "?") {
      take_name(next_word(line), in_blocks);
      return;
    }
    if (word == "|")
      need.alternatives.emplace_back();
    else if (word == "-")
      need.none = true;
    else
      need.alternatives.back().push_back(take_name(word, in_blocks));
  }
  std::erase_if(need.alternatives, [](const auto& list) { return list.empty(); });
  needs_.push_back(std::move(need));
}

std::optional<std::string_view> ModelTensors::dims(std::string_view name, bool in_blocks) const {
  const auto& all = dims_[in_blocks ? 1 : 0];
  const auto at = all.find(name);
  return at == all.end() ? std::nullopt : std::optional(at->second);
}

LocalName LocalName::of(std::string_view name) {
  constexpr std::string_view k_block = "blk.";
  LocalName local;
  std::string_view rest = name;
  for (const std::string_view tower : {"enc.", "dec."}) {
    if (!rest.starts_with(tower)) continue;
    local.tower = tower;
    rest.remove_prefix(tower.size());
    break;
  }
  std::uint64_t block = 0;
  if (rest.starts_with(k_block)) {
    rest.remove_prefix(k_block.size());
    const auto [end, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), block);
    const auto used = static_cast<std::size_t>(end - rest.data());
    if (ec == std::errc{} && used < rest.size() && *end == '.') {
      local.block = block;
      local.name = std::string(local.tower) + std::string(rest.substr(used + 1));
      return local;
    }
  }
  local.name = name;
  return local;
}

std::string LocalName::whole(std::string_view name, std::uint64_t block) {
  std::string tower;
  if (name.starts_with("enc.") || name.starts_with("dec.")) {
    tower = name.substr(0, 4);
    name.remove_prefix(tower.size());
  }
  return tower + "blk." + std::to_string(block) + "." + std::string(name);
}

namespace {

/// What is missing for one need; nothing where it is met.
template <class Has>
std::vector<std::string> missing_for(const ModelTensors::Need& need,
                                     const std::set<std::string_view>& shared, Has&& has) {
  const std::vector<std::string>* best = nullptr;
  std::size_t best_present = 0;
  std::size_t best_missing = 0;
  for (const auto& list : need.alternatives) {
    std::size_t present = 0;
    std::size_t telling = 0; // names that belong to this need alone
    for (const std::string& name : list) {
      if (!has(name)) continue;
      ++present;
      if (!shared.contains(name)) ++telling;
    }
    const std::size_t missing = list.size() - present;
    if (missing == 0) return {};
    if (best == nullptr || telling > best_present ||
        (telling > 0 && telling == best_present && missing < best_missing)) {
      best = &list;
      best_present = telling;
      best_missing = missing;
    }
  }
  std::vector<std::string> out;
  if (best == nullptr || (need.none && best_present == 0)) return out;
  for (const std::string& name : *best)
    if (!has(name)) out.push_back(name);
  return out;
}

/// Names that stand in more than one need.
std::set<std::string_view> shared_names(const ModelTensors& table, bool in_blocks) {
  std::set<std::string_view> once;
  std::set<std::string_view> shared;
  for (const ModelTensors::Need& need : table.needs()) {
    if (need.in_blocks != in_blocks) continue;
    std::set<std::string_view> here;
    for (const auto& list : need.alternatives)
      here.insert(list.begin(), list.end());
    for (const std::string_view name : here)
      if (!once.insert(name).second) shared.insert(name);
  }
  return shared;
}

/// The blocks of each tower, with the tensors in them.
using Tower = std::map<std::uint64_t, std::set<std::string>>;

} // namespace

std::vector<std::string> find_lacking(const GgufModelView& model, const ModelTensors& table) {
  std::map<std::string_view, Tower> towers;
  std::set<std::string> trunk;
  for (const GgufTensorInfo* tensor : model.tensors()) {
    LocalName local = LocalName::of(tensor->name);
    if (local.block)
      towers[local.tower][*local.block].insert(std::move(local.name));
    else
      trunk.insert(std::move(local.name));
  }
  // Layers for multi-token prediction come last and are made differently. A file may hold them
  // alone.
  const std::uint64_t count = model.model_number("block_count").value_or(0);
  const std::uint64_t more = model.model_number("nextn_predict_layers").value_or(0);
  const std::uint64_t own = count > more ? count - more : count;
  if (auto& blocks = towers[""]; !blocks.empty()) {
    blocks.erase(blocks.lower_bound(own), blocks.end());
    if (blocks.empty()) return {};
  }
  std::vector<std::string> out;
  const auto shared = shared_names(table, true);
  for (const ModelTensors::Need& need : table.needs()) {
    if (!need.in_blocks) {
      auto missing = missing_for(need, {}, [&](const auto& name) { return trunk.contains(name); });
      out.insert(out.end(), missing.begin(), missing.end());
      continue;
    }
    const LocalName sample = LocalName::of(need.alternatives.front().front());
    for (const auto& [number, names] : towers[sample.tower]) {
      const auto has = [&names = names](const auto& name) { return names.contains(name); };
      for (const std::string& name : missing_for(need, shared, has))
        out.push_back(LocalName::whole(name, number));
      if (out.size() > Report::k_cap) return out;
    }
  }
  return out;
}

} // namespace modeld::validate
