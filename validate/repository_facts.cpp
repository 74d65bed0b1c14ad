// SPDX-License-Identifier: Apache-2.0
// config.json, read once: RC-01 to RC-04, and where the language model's tensors are.
#include "validate/repository_facts.hpp"

#include "validate/escape.hpp"
#include "validate/repository.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_max_count = (std::uint64_t{1} << 31) - 1;

JsonDocument read_json(RepositoryFacts& facts, std::string_view path, Report& report) {
  const auto bytes = facts.files.bytes(path);
  if (!bytes) return {};
  report.set_path(std::string(path));
  if (bytes->size() > facts.options.limits.config_bytes) {
    report.error("GN-08", 0,
                 fmt::format("the file has {} bytes, the limit is {}", bytes->size(),
                             facts.options.limits.config_bytes));
    return {};
  }
  JsonDocument document = JsonDocument::parse(text_of(*bytes), JsonReader::NonFinite::accept);
  if (!document.fault().empty()) {
    report.error("RC-01", document.fault_offset(),
                 fmt::format("the file is no JSON: {}", document.fault()));
    return document;
  }
  for (const JsonDocument::Duplicate& twice : document.duplicates())
    report.error("RC-01", twice.offset, fmt::format("member {} stands twice", quoted(twice.name)));
  if (document.has_non_finite())
    report.warn("RC-01", std::nullopt, "NaN or Infinity stands for a number, which is no JSON");
  if (document.has_byte_order_mark())
    report.warn("RC-01", 0, "the file starts with a byte order mark");
  return document;
}

JsonValue text_part(JsonValue root) {
  for (const std::string_view name : {"text_config", "llm_config", "language_config"})
    if (const JsonValue part = root[name]; part.is_object()) return part;
  if (const JsonValue part = root["thinker_config"]["text_config"]; part.is_object()) return part;
  return root;
}

bool is_count(JsonValue value, bool may_be_zero) {
  const auto number = value.as_u64();
  return number && *number <= k_max_count && (*number > 0 || may_be_zero);
}

/// What may be a list with a number for each layer (zero: a layer that has none), or null for one.
bool is_count_by_layer(JsonValue list) {
  for (const JsonValue item : list)
    if (!item.is_null() && !is_count(item, true)) return false;
  return true;
}

/// RC-02: what is a count is a whole number of a sensible size.
void check_counts(const RepositoryFacts& facts, Report& report) {
  struct Count {
    std::string_view name;
    bool by_layer = false;
    bool may_be_zero = false;
  };
  constexpr auto k_counts = std::to_array<Count>({
      {"vocab_size"},
      {"hidden_size"},
      {"num_hidden_layers"},
      {"num_attention_heads", true},
      {"num_key_value_heads", true},
      {"head_dim", true},
      {"intermediate_size", true},
      {"num_experts", true, true},
      {"num_local_experts", true, true},
      {"n_routed_experts", true, true},
      {"num_experts_per_tok", true, true},
      {"max_position_embeddings"},
  });
  for (const Count& count : k_counts) {
    const JsonValue value = facts.text[count.name];
    if (!value.exists() || value.is_null() || is_count(value, count.may_be_zero)) continue;
    if (value.is_array() && count.by_layer && is_count_by_layer(value)) continue;
    report.error("RC-02", value.offset(),
                 fmt::format("{} is {}, it must be a whole number from {} to 2^31-1{}", count.name,
                             value.is_number() || value.is_string() ? quoted(value.text())
                                                                    : describe(value.kind()),
                             count.may_be_zero ? 0 : 1,
                             count.by_layer ? ", or a list of those" : ""));
  }
}

/// RC-04 and RC-41: code that comes with the repository.
void check_code(const RepositoryFacts& facts, Report& report) {
  const bool map = facts.config.root()["auto_map"].exists();
  std::string first;
  for (const FileSet::Entry& entry : facts.files.entries())
    if (first.empty() && entry.path.ends_with(".py")) first = entry.path;
  if (!map && first.empty()) return;
  report.warn("RC-04", std::nullopt,
              fmt::format("the repository brings code of its own ({}); it is never run",
                          first.empty() ? "auto_map" : escape_text(first)));
}

/// The token embedding by its usual names; the shortest name is the language model's.
void find_trunk(RepositoryFacts& facts) {
  constexpr auto k_embeddings = std::to_array<std::string_view>(
      {"embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight",
       "tok_embeddings.weight", "embeddings.weight", "shared.weight", "embedding.weight"});
  for (const TensorTable::Row& row : facts.tensors.rows()) {
    const std::string_view name = row.tensor->name;
    if (name.find("vis") != std::string_view::npos ||
        name.find("audio") != std::string_view::npos ||
        name.find("position") != std::string_view::npos ||
        name.find("per_layer") != std::string_view::npos ||
        name.find("talker") != std::string_view::npos || row.shape().size() != 2)
      continue;
    for (const std::string_view ending : k_embeddings) {
      const bool whole = name == ending ||
                         (name.ends_with(ending) && name[name.size() - ending.size() - 1] == '.');
      if (!whole) continue;
      if (facts.embedding != nullptr && facts.embedding->tensor->name.size() <= name.size())
        continue;
      facts.embedding = &row;
      facts.trunk = name.substr(0, name.size() - ending.size());
    }
  }
  const std::string outer =
      facts.trunk.ends_with("model.") ? facts.trunk.substr(0, facts.trunk.size() - 6) : facts.trunk;
  for (const std::string& name :
       {outer + "lm_head.weight", std::string("lm_head.weight"), facts.trunk + "lm_head.weight",
        std::string("language_model.lm_head.weight"), outer + "output.weight",
        outer + "embed_out.weight"})
    if (facts.output == nullptr) facts.output = facts.tensors.find(name);
}

} // namespace

void TensorTable::add(std::string_view file, const SafetensorsHeader& header) {
  names_.reserve(rows_.size() + header.tensors.size());
  for (const SafetensorsTensor& tensor : header.tensors) {
    const auto name_at = [&](std::uint32_t i) -> std::string_view { return rows_[i].tensor->name; };
    names_.insert(tensor.name, static_cast<std::uint32_t>(rows_.size()), name_at);
    rows_.push_back({file, &header, &tensor});
  }
}

const TensorTable::Row* TensorTable::find(std::string_view name) const {
  const auto at =
      names_.find(name, [&](std::uint32_t i) -> std::string_view { return rows_[i].tensor->name; });
  return at ? &rows_[*at] : nullptr;
}

std::optional<std::uint64_t>
RepositoryFacts::number(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys)
    if (const auto value = text[key].as_u64(); value && *value <= k_max_count) return value;
  return std::nullopt;
}

bool RepositoryFacts::is_llama_kind() const {
  constexpr auto k_kind = std::to_array<std::string_view>(
      {"gemma", "gemma2", "gemma3_text", "granite", "llama", "mistral", "mixtral", "qwen2",
       "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"});
  return std::binary_search(k_kind.begin(), k_kind.end(), model_type);
}

void read_repository_facts(RepositoryFacts& facts, Report& report) {
  facts.config = read_json(facts, "config.json", report);
  facts.generation = read_json(facts, "generation_config.json", report);
  report.set_path("config.json");
  const JsonValue root = facts.config.root();
  facts.text = text_part(root);
  if (root.exists()) {
    if (!root.is_object()) {
      report.error("RC-01", 0, "config.json must be an object");
      return;
    }
    if (!root["architectures"].exists() && !root["model_type"].exists())
      report.warn("RC-03", std::nullopt, "neither architectures nor model_type is given");
    for (const JsonValue name : root["architectures"]) {
      if (facts.architecture.empty()) facts.architecture = name.as_string().value_or("");
    }
    facts.model_type =
        facts.text["model_type"].as_string().value_or(root["model_type"].as_string().value_or(""));
    check_counts(facts, report);
  }
  check_code(facts, report);
  facts.hidden = facts.number({"hidden_size", "n_embd", "d_model"});
  facts.layers = facts.number({"num_hidden_layers", "n_layer", "num_layers"});
  facts.heads = facts.number({"num_attention_heads", "n_head"});
  facts.kv_heads = facts.number({"num_key_value_heads"});
  if (!facts.kv_heads && !facts.text["num_key_value_heads"].is_array())
    facts.kv_heads = facts.heads;
  facts.head_dim = facts.number({"head_dim"});
  facts.ffn = facts.number({"intermediate_size"});
  facts.vocab = facts.number({"vocab_size"});
  facts.experts = facts.number({"num_experts", "num_local_experts", "n_routed_experts"});
  facts.quantized = root["quantization_config"].is_object() ||
                    facts.text["quantization_config"].is_object() ||
                    facts.files.contains("hf_quant_config.json");
  find_trunk(facts);
}

} // namespace modeld::validate
