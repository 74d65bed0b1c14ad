// SPDX-License-Identifier: Apache-2.0
// Whether every layer and every expert is there: RC-23 to RC-29.
#include "validate/escape.hpp"
#include "validate/repository.hpp"
#include "validate/repository_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <vector>

namespace modeld::validate {
namespace {

/// The number behind `word` in a name: "model.layers.12.x" with "layers." gives 12 and "x".
struct Numbered {
  std::uint64_t number = 0;
  std::string_view rest;
};

std::optional<Numbered> numbered(std::string_view name, std::string_view word) {
  if (!name.starts_with(word)) return std::nullopt;
  name.remove_prefix(word.size());
  Numbered result;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), result.number);
  const auto used = static_cast<std::size_t>(end - name.data());
  if (ec != std::errc{} || used == name.size() || *end != '.') return std::nullopt;
  result.rest = name.substr(used + 1);
  return result;
}

/// What one layer holds.
struct Layer {
  std::set<std::string_view> suffixes;
  std::set<std::uint64_t> experts;
};

using Layers = std::map<std::uint64_t, Layer>;

/// Layers of the trunk, by "layers.", "h." or "blocks.".
Layers layers_of(const RepositoryFacts& facts) {
  Layers layers;
  for (const TensorTable::Row& row : facts.tensors.rows()) {
    std::string_view name = row.tensor->name;
    if (!name.starts_with(facts.trunk)) continue;
    name.remove_prefix(facts.trunk.size());
    for (const std::string_view word : {"layers.", "h.", "blocks."}) {
      const auto layer = numbered(name, word);
      if (!layer) continue;
      Layer& found = layers[layer->number];
      found.suffixes.insert(layer->rest);
      const std::size_t experts = layer->rest.find("experts.");
      if (experts == std::string_view::npos) continue;
      if (const auto expert = numbered(layer->rest.substr(experts), "experts."))
        found.experts.insert(expert->number);
    }
  }
  return layers;
}

void check_indices(const RepositoryFacts& facts, const Layers& layers, Report& report) {
  if (!facts.layers || layers.empty()) return;
  const std::uint64_t offset = facts.text["num_hidden_layers"].offset();
  // A few missing numbers are listed by the first of them; there may be any number of them.
  std::uint64_t next = 0;
  for (const auto& [index, layer] : layers) {
    if (index != next || next >= *facts.layers) break;
    ++next;
  }
  if (next < *facts.layers) {
    report.error(
        "RC-23", offset,
        fmt::format("num_hidden_layers is {}, and layer {} has no tensors", *facts.layers, next),
        "a shard is missing, or the configuration is another model's");
  }
  const std::uint64_t more =
      facts.number({"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers"})
          .value_or(0);
  if (layers.rbegin()->first >= *facts.layers + more) {
    report.warn("RC-24", offset,
                fmt::format("num_hidden_layers is {}, and there are tensors of layer {}",
                            *facts.layers, layers.rbegin()->first));
  }
}

/// RC-25: a suffix that all layers have but one.
void check_odd_layers(const RepositoryFacts& facts, const Layers& layers, Report& report) {
  constexpr std::size_t k_enough = 4; // fewer layers make no pattern
  if (layers.size() < k_enough || facts.text["layer_types"].exists()) return;
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [index, layer] : layers)
    for (const std::string_view suffix : layer.suffixes)
      ++counts[suffix];
  const std::uint64_t first = layers.begin()->first;
  const std::uint64_t last = layers.rbegin()->first;
  // What one layer lacks; a layer that lacks several is of another kind (hybrid models).
  std::map<std::uint64_t, std::vector<std::string_view>> lacks;
  for (const auto& [suffix, count] : counts) {
    if (count != layers.size() - 1 || suffix.find("experts.") != std::string_view::npos) continue;
    for (const auto& [index, layer] : layers)
      if (!layer.suffixes.contains(suffix)) lacks[index].push_back(suffix);
  }
  for (const auto& [index, suffixes] : lacks) {
    // First and last layers differ by design: dense ones, predictors, shared norms.
    if (suffixes.size() > 1 || index == first || index == last) continue;
    for (const std::string_view suffix : suffixes) {
      report.warn(
          "RC-25", std::nullopt,
          fmt::format("layer {} has no {}, every other layer has one", index, quoted(suffix)));
    }
  }
}

void check_experts(const RepositoryFacts& facts, const Layers& layers, Report& report) {
  const auto used = facts.number({"num_experts_per_tok", "moe_topk", "num_experts_per_token"});
  if (!facts.experts || *facts.experts == 0) return;
  if (used && *used > *facts.experts) {
    report.error(
        "RC-26", facts.text["num_experts_per_tok"].offset(),
        fmt::format("{} experts are used for a token, there are {}", *used, *facts.experts));
  }
  for (const auto& [index, layer] : layers) {
    if (layer.experts.empty() || report.full()) continue;
    const std::uint64_t count = layer.experts.size();
    if (count == *facts.experts && *layer.experts.rbegin() == *facts.experts - 1) continue;
    report.error("RC-26", std::nullopt,
                 fmt::format("layer {} has {} experts, the largest number is {}, the configuration "
                             "says {}",
                             index, count, *layer.experts.rbegin(), *facts.experts));
  }
  if (facts.quantized || !facts.layers) return;
  for (const auto& [index, layer] : layers) {
    for (const char* router : {"mlp.gate.weight", "block_sparse_moe.gate.weight"}) {
      const auto* row =
          facts.tensors.find(fmt::format("{}layers.{}.{}", facts.trunk, index, router));
      if (row == nullptr || row->rows() == *facts.experts || row->rows() == 0 || report.full())
        continue;
      report.error("RC-26", std::nullopt,
                   fmt::format("{} has {} rows for {} experts", quoted(row->tensor->name),
                               row->rows(), *facts.experts));
    }
  }
}

/// Whether there is such a tensor; "language_model." may stand anywhere in a name or nowhere.
bool contains(const RepositoryFacts& facts, const std::string& name) {
  constexpr std::string_view k_word = "language_model.";
  if (facts.tensors.contains(name)) return true;
  const std::size_t at = name.find(k_word);
  if (at == std::string::npos) return false;
  std::string plain = name;
  plain.erase(at, k_word.size());
  return facts.tensors.contains(plain) || facts.tensors.contains(std::string(k_word) + plain);
}

/// RC-29: what a layer of the llama kind cannot do without.
void check_required(const RepositoryFacts& facts, const Layers& layers, Report& report) {
  if (!facts.is_llama_kind() || facts.quantized || facts.embedding == nullptr || layers.empty())
    return;
  if (facts.plan && !is_partial(*facts.plan)) return;
  const auto need = [&](const std::string& name) {
    if (!contains(facts, name) && !report.full())
      report.error("RC-29", std::nullopt,
                   fmt::format("tensor {} is missing, models of type {} have it", quoted(name),
                               quoted(facts.model_type)),
                   "a shard is missing or incomplete; pull the repository again");
  };
  need(facts.trunk + "norm.weight");
  for (const auto& [index, layer] : layers) {
    if (facts.layers && index >= *facts.layers) break;
    const std::string prefix = fmt::format("{}layers.{}.", facts.trunk, index);
    for (const char* part :
         {"input_layernorm.weight", "post_attention_layernorm.weight", "self_attn.q_proj.weight",
          "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight"})
      need(prefix + part);
    const bool sparse = !layer.experts.empty() ||
                        std::any_of(layer.suffixes.begin(), layer.suffixes.end(), [](auto suffix) {
                          return suffix.find("expert") != std::string_view::npos ||
                                 suffix.find("moe") != std::string_view::npos;
                        });
    if (sparse) continue;
    for (const char* part : {"mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"})
      need(prefix + part);
  }
}

void note_dtype(const RepositoryFacts& facts, Report& report) {
  JsonValue key = facts.config.root()["torch_dtype"];
  if (!key.exists()) key = facts.config.root()["dtype"];
  const auto said = key.as_string();
  if (!said || facts.tensors.rows().empty() || facts.quantized) return;
  std::map<SafetensorsDtype, std::uint64_t> bytes;
  for (const TensorTable::Row& row : facts.tensors.rows())
    bytes[row.tensor->dtype] += row.tensor->bytes();
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::string_view name = info(most->first).name;
  const std::string_view expected = *said == "bfloat16"  ? "BF16"
                                    : *said == "float16" ? "F16"
                                    : *said == "float32" ? "F32"
                                                         : name;
  if (name != expected)
    report.note("RC-27", key.offset(),
                fmt::format("the configuration says {}, most tensors are {}", quoted(*said), name));
}

} // namespace

void check_config_layers(const RepositoryFacts& facts, Report& report) {
  report.set_path("config.json");
  if (facts.embedding == nullptr) return; // an adapter, a vision tower, or nothing that we know
  const Layers layers = layers_of(facts);
  check_indices(facts, layers, report);
  check_odd_layers(facts, layers, report);
  check_experts(facts, layers, report);
  check_required(facts, layers, report);
  note_dtype(facts, report);
}

} // namespace modeld::validate
