// SPDX-License-Identifier: Apache-2.0
// Numbers of config.json against the shapes of tensors: RC-10 to RC-22, RC-28.
#include "validate/escape.hpp"
#include "validate/repository.hpp"
#include "validate/repository_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace modeld::validate {
namespace {

void check_embedding(const RepositoryFacts& facts, Report& report) {
  if (facts.embedding == nullptr || facts.embedding->shape().size() != 2) return;
  const std::uint64_t rows = facts.embedding->shape()[0];
  const std::uint64_t columns = facts.embedding->shape()[1];
  const std::string name = quoted(facts.embedding->tensor->name);
  if (facts.vocab && rows < *facts.vocab) {
    report.error("RC-10", facts.text["vocab_size"].offset(),
                 fmt::format("vocab_size is {}, and {} has {} rows", *facts.vocab, name, rows));
  }
  if (facts.vocab && rows > *facts.vocab) {
    report.warn("RC-11", facts.text["vocab_size"].offset(),
                fmt::format("vocab_size is {}, and {} has {} rows", *facts.vocab, name, rows));
  }
  const bool narrow =
      facts.text["embedding_size"].exists() || facts.text["word_embed_proj_dim"].exists();
  if (facts.hidden && columns != *facts.hidden && !narrow && !facts.quantized) {
    report.error("RC-12", facts.text["hidden_size"].offset(),
                 fmt::format("hidden_size is {}, and rows of {} have {} elements", *facts.hidden,
                             name, columns));
  }
}

/// Whether a model type shares embedding and output where its configuration does not say.
std::optional<bool> default_tie(std::string_view model_type) {
  constexpr auto k_apart = std::to_array<std::string_view>(
      {"granite", "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"});
  constexpr auto k_tied = std::to_array<std::string_view>(
      {"gemma", "gemma2", "gemma3", "gemma3_text", "gpt2", "smollm3"});
  if (std::find(k_apart.begin(), k_apart.end(), model_type) != k_apart.end()) return false;
  if (std::find(k_tied.begin(), k_tied.end(), model_type) != k_tied.end()) return true;
  return std::nullopt;
}

bool same_bytes(const RepositoryFacts& facts) {
  const auto a = facts.files.bytes(facts.embedding->file);
  const auto b = facts.files.bytes(facts.output->file);
  if (!a || !b) return true;
  const auto x = facts.embedding->header->data(*a, *facts.embedding->tensor);
  const auto y = facts.output->header->data(*b, *facts.output->tensor);
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size()) == 0;
}

/// Whether a family that keeps its output apart has none. Where the configuration says that it is
/// apart, the family's rules tell; else only what is known of Llama's kind.
bool lacks_output(const RepositoryFacts& facts, bool said) {
  if (facts.is_llama_kind()) return true;
  return said && facts.plan && plan_lacks_output(*facts.plan);
}

void check_output(const RepositoryFacts& facts, Report& report) {
  if (facts.embedding == nullptr) return;
  const auto rows = facts.embedding_rows();
  if (facts.output != nullptr && rows && facts.output->shape().size() == 2 && !facts.quantized) {
    const std::uint64_t own = facts.output->shape()[0];
    if (own != *rows)
      report.add("RC-13", own < *rows ? Severity::error : Severity::warning, std::nullopt,
                 fmt::format("{} has {} rows, the embedding {}", quoted(facts.output->tensor->name),
                             own, *rows));
  }
  JsonValue key = facts.text["tie_word_embeddings"];
  if (!key.exists()) key = facts.config.root()["tie_word_embeddings"];
  const auto said = key.as_bool();
  const auto tied = said ? said : default_tie(facts.model_type);
  if (!said && facts.config.root().exists() && facts.architecture.ends_with("ForCausalLM"))
    report.note("RC-16", std::nullopt,
                fmt::format("tie_word_embeddings is absent, its default depends on the model type "
                            "{}",
                            quoted(facts.model_type)));
  if (tied == false && facts.output == nullptr && lacks_output(facts, said.has_value()) &&
      facts.architecture.ends_with("ForCausalLM")) {
    report.error("RC-14", key.offset(),
                 "embedding and output are not tied, and there is no output tensor (lm_head)",
                 "a shard is missing, or tie_word_embeddings is wrong");
  }
  if (tied == true && facts.output != nullptr) {
    const bool differ = facts.options.data && !same_bytes(facts);
    report.add("RC-15", differ ? Severity::warning : Severity::info, key.offset(),
               differ
                   ? "embedding and output are tied, and the stored output differs from the "
                     "embedding: loaders ignore one of them"
                   : "embedding and output are tied, and an output tensor is stored all the same");
  }
}

/// Rows and columns of one projection, where it is there as a plain matrix.
void check_matrix(const RepositoryFacts& facts, const std::string& name, std::uint64_t rows,
                  std::uint64_t columns, std::string_view rule, Report& report) {
  const TensorTable::Row* row = facts.tensors.find(name);
  if (row == nullptr || row->shape().size() != 2 || report.full()) return;
  if (row->rows() == rows && row->columns() == columns) return;
  report.error(rule, std::nullopt,
               fmt::format("{} is [{}, {}], the configuration makes it [{}, {}]", quoted(name),
                           row->rows(), row->columns(), rows, columns));
}

void check_layer(const RepositoryFacts& facts, std::uint64_t layer, std::uint64_t head,
                 Report& report) {
  const std::string prefix = fmt::format("{}layers.{}.", facts.trunk, layer);
  const std::uint64_t hidden = *facts.hidden;
  const std::uint64_t q = *facts.heads * head;
  const std::uint64_t kv = *facts.kv_heads * head;
  check_matrix(facts, prefix + "self_attn.q_proj.weight", q, hidden, "RC-20", report);
  check_matrix(facts, prefix + "self_attn.k_proj.weight", kv, hidden, "RC-21", report);
  check_matrix(facts, prefix + "self_attn.v_proj.weight", kv, hidden, "RC-21", report);
  check_matrix(facts, prefix + "self_attn.o_proj.weight", hidden, q, "RC-22", report);
  if (facts.ffn) {
    check_matrix(facts, prefix + "mlp.gate_proj.weight", *facts.ffn, hidden, "RC-22", report);
    check_matrix(facts, prefix + "mlp.up_proj.weight", *facts.ffn, hidden, "RC-22", report);
    check_matrix(facts, prefix + "mlp.down_proj.weight", hidden, *facts.ffn, "RC-22", report);
  }
  for (const char* norm : {"input_layernorm.weight", "post_attention_layernorm.weight"}) {
    const TensorTable::Row* row = facts.tensors.find(prefix + norm);
    if (row == nullptr || row->shape() == std::vector<std::uint64_t>{hidden} || report.full())
      continue;
    report.error("RC-22", std::nullopt,
                 fmt::format("{} has {} elements, hidden_size is {}", quoted(prefix + norm),
                             row->tensor->elements(), hidden));
  }
}

void check_attention(const RepositoryFacts& facts, Report& report) {
  if (!facts.is_llama_kind() || !facts.hidden || !facts.heads || *facts.heads == 0) return;
  const std::uint64_t offset = facts.text["num_attention_heads"].offset();
  if (!facts.head_dim && *facts.hidden % *facts.heads != 0) {
    report.error(
        "RC-20", offset,
        fmt::format("hidden_size {} is no multiple of num_attention_heads {}, and there is "
                    "no head_dim",
                    *facts.hidden, *facts.heads));
    return;
  }
  if (!facts.kv_heads || *facts.kv_heads == 0) return;
  if (*facts.heads % *facts.kv_heads != 0) {
    report.error(
        "RC-21", facts.text["num_key_value_heads"].offset(),
        fmt::format("{} heads are no multiple of {} key heads", *facts.heads, *facts.kv_heads));
    return;
  }
  if (facts.quantized || !facts.layers || facts.plan) return;
  const std::uint64_t head = facts.head_dim.value_or(*facts.hidden / *facts.heads);
  // Layers beyond the tensors that are there have nothing to compare.
  const std::uint64_t most = std::min<std::uint64_t>(*facts.layers, facts.tensors.rows().size());
  for (std::uint64_t layer = 0; layer < most && !report.full(); ++layer)
    check_layer(facts, layer, head, report);
}

/// How many elements of a head are turned: pairs, and one factor for each pair.
void check_rotary_width(const RepositoryFacts& facts, Report& report) {
  if (!facts.is_llama_kind() && !facts.text["rope_scaling"]["long_factor"].exists()) return;
  if (!facts.head_dim && (!facts.hidden || !facts.heads || *facts.heads == 0)) return;
  const std::uint64_t head = facts.head_dim ? *facts.head_dim : *facts.hidden / *facts.heads;
  const double share = facts.text["partial_rotary_factor"].as_double().value_or(1);
  if (!(share > 0 && share <= 1)) return;
  const auto width = static_cast<std::uint64_t>(static_cast<double>(head) * share);
  if (width % 2 != 0) {
    report.warn("RC-28", facts.text["head_dim"].offset(),
                fmt::format("{} elements of each head are turned, which are no pairs", width));
    return;
  }
  for (const std::string_view name : {"long_factor", "short_factor"}) {
    const JsonValue list = facts.text["rope_scaling"][name];
    std::uint64_t count = 0;
    for ([[maybe_unused]] const JsonValue item : list)
      ++count;
    if (!list.is_array() || count == width / 2) continue;
    report.warn("RC-28", list.offset(),
                fmt::format("{} has {} elements, it must have {} for {} that are turned", name,
                            count, width / 2, width));
  }
}

} // namespace

void check_config_shapes(const RepositoryFacts& facts, Report& report) {
  report.set_path("config.json");
  check_embedding(facts, report);
  check_output(facts, report);
  check_attention(facts, report);
}

void check_config_rope(const RepositoryFacts& facts, Report& report) {
  report.set_path("config.json");
  const auto positive = [&](JsonValue value, std::string_view name) {
    const auto number = value.as_double();
    if (!number || (std::isfinite(*number) && *number > 0)) return;
    report.error("RC-28", value.offset(),
                 fmt::format("{} is {}, it must be a finite number above 0", name,
                             escape_text(value.text(), 40)));
  };
  positive(facts.text["rope_theta"], "rope_theta");
  for (const std::string_view block : {"rope_scaling", "rope_parameters"}) {
    const JsonValue scaling = facts.text[block];
    positive(scaling["factor"], "the factor of rope scaling");
    positive(scaling["rope_theta"], "rope_theta");
    for (const std::string_view name : {"long_factor", "short_factor"})
      for (const JsonValue factor : scaling[name])
        positive(factor, name);
  }
  check_rotary_width(facts, report);
  const JsonValue partial = facts.text["partial_rotary_factor"];
  if (const auto share = partial.as_double(); share && !(*share > 0 && *share <= 1))
    report.warn("RC-28", partial.offset(),
                fmt::format("partial_rotary_factor is {}, it must be above 0 and at most 1",
                            escape_text(partial.text(), 40)));
}

} // namespace modeld::validate
