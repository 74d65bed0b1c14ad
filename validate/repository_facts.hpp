// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "validate/finding.hpp"
#include "validate/json_document.hpp"
#include "validate/repository.hpp"
#include "validate/safetensors.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::validate {

/// The tensors of a checkpoint, over all of its files.
class TensorTable {
public:
  struct Row {
    std::string_view file;
    const SafetensorsHeader* header = nullptr;
    const SafetensorsTensor* tensor = nullptr;

    const std::vector<std::uint64_t>& shape() const { return tensor->shape; }
    /// Of a matrix; 0 where it is none.
    std::uint64_t rows() const { return shape().size() == 2 ? shape()[0] : 0; }
    std::uint64_t columns() const { return shape().size() == 2 ? shape()[1] : 0; }
  };

  /// The header outlives the table.
  void add(std::string_view file, const SafetensorsHeader& header);
  const std::vector<Row>& rows() const { return rows_; }
  const Row* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }

private:
  std::vector<Row> rows_;
  NameIndex names_;
};

/// What a repository declares and what it holds, side by side; missing parts are empty.
struct RepositoryFacts {
  RepositoryFacts(const FileSet& set, const CheckOptions& how) : files(set), options(how) {}

  const FileSet& files;
  const CheckOptions& options;
  TensorTable tensors;
  JsonDocument config;      ///< config.json
  JsonDocument generation;  ///< generation_config.json
  JsonValue text;           ///< the part of config.json about the language model
  std::string model_type;   ///< of the text part
  std::string architecture; ///< architectures[0]

  std::optional<std::uint64_t> hidden, layers, heads, kv_heads, head_dim, ffn, vocab, experts;
  std::optional<CheckpointPlan> plan; ///< by the family's rules, where it has some
  bool quantized = false;             ///< quantization_config: shapes are those of packed tensors

  std::string trunk;                           ///< "model.": what the embedding's name begins with
  const TensorTable::Row* embedding = nullptr; ///< token embedding
  const TensorTable::Row* output = nullptr;    ///< lm_head
  std::optional<std::uint64_t> embedding_rows() const {
    return embedding == nullptr || embedding->shape().size() != 2
               ? std::nullopt
               : std::optional(embedding->shape()[0]);
  }

  /// The first of these keys that is a whole number.
  std::optional<std::uint64_t> number(std::initializer_list<std::string_view> keys) const;
  /// Architectures with the llama layout and names: q, k, v, o; gate, up, down; two norms.
  bool is_llama_kind() const;
};

/// Reads configuration and finds the trunk; findings RC-01 to RC-04 on the way.
void read_repository_facts(RepositoryFacts& facts, Report& report);

/// RC-20 to RC-22, RC-26, RC-29 by the rules of the family.
void check_checkpoint_plan(const CheckpointPlan& plan, Report& report);
/// Whether the checkpoint has tensors that the family's rules do not take.
bool is_partial(const CheckpointPlan& plan);
/// Whether the family has an output of its own, and the checkpoint has none for it.
bool plan_lacks_output(const CheckpointPlan& plan);

// The rules, by what they look at. Each sets the report's path to the file that it is about.
void check_config_shapes(const RepositoryFacts& facts,
                         Report& report); ///< RC-10 to RC-16, RC-20 to RC-22
void check_config_layers(const RepositoryFacts& facts, Report& report);  ///< RC-23 to RC-29
void check_config_rope(const RepositoryFacts& facts, Report& report);    ///< RC-28
void check_packed_weights(const RepositoryFacts& facts, Report& report); ///< RC-30, RC-31
void check_special_ids(const RepositoryFacts& facts, Report& report);    ///< RC-40
class GgufModelView;
/// GX-20, GX-21
void check_gguf_beside_checkpoint(const RepositoryFacts& facts, const GgufModelView& model,
                                  Report& report);
void check_tokenizer_files(const RepositoryFacts& facts, Report& report); ///< TK-01 to TK-13

} // namespace modeld::validate
