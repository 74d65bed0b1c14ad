// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "quantize/recipe/file_type.hpp"
#include "quantize/recipe/model_facts.hpp"
#include "quantize/recipe/tensor_role.hpp"
#include "schema/result.hpp"

#include <optional>
#include <regex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// A --tensor-type rule: ECMAScript regular expression, searched for anywhere in the name.
struct TypeRule {
  std::string pattern;
  std::regex expression;
  TensorType type;
};

/// Compiles patterns; invalid_argument with the pattern and what is wrong with it.
Result<std::vector<TypeRule>>
compile_rules(std::span<const std::pair<std::string, TensorType>> rules);

struct TypeOptions {
  FileType file_type = FileType::q8_0;
  TensorType default_type = TensorType::q8_0;
  std::optional<TensorType> output_type;
  std::optional<TensorType> embedding_type;
  std::vector<TypeRule> rules; ///< the first that matches wins
  bool pure = false;
  bool leave_output = false;
  bool has_importance = false; ///< a matrix was given, whatever is in it
};

/// The type of one tensor, and how it came about.
struct TypeChoice {
  TensorType type;
  TensorType wanted; ///< before a row length that does not divide forced another
};

/// The reference's choice of a type for each tensor (llama.cpp v0.4.0, llama-quant.cpp). Depends on
/// the order: call choose() once for each tensor, in the order of the output, since "the first
/// eighth of the layers" is counted in tensors seen. Precedence, highest first:
///   1. not quantizable, or output.weight with leave_output: stays as it is
///   2. embedding_type for token embeddings (a rule that names per_layer_token_embd goes before),
///      output_type for output.weight; these are taken as given, whatever the row length
///   3. rules, where the target is a quantized type
///   4. the recipe's mixture, unless pure; a token embedding without an output.weight beside it is
///      the output, and follows output_type
///   5. the recipe's default type
/// 3 to 5 then give way to a type whose block divides the row.
class TypeChooser {
public:
  TypeChooser(const ModelFacts& facts, const TypeOptions& options,
              std::span<const std::string> names);

  /// malformed: a layer number that cannot be. unsupported: a row length for which no substitute
  /// is defined, or a type given by hand whose block does not divide the row.
  Result<TypeChoice> choose(const GgufTensor& tensor);

private:
  bool is(FileType type) const { return options_.file_type == type; }
  template <class... Types>
  bool is_any(Types... types) const {
    return (is(types) || ...);
  }
  const TypeRule* rule_for(std::string_view name) const;
  Result<TensorType> mixture(const GgufTensor& tensor, TensorRole role);
  TensorType output(const GgufTensor& tensor) const;
  TensorType moe_fp4(const GgufTensor& tensor, TensorRole role) const;
  TensorType embedding() const;
  TensorType low_bit(TensorRole role);
  TensorType value();
  TensorType key_or_query(TensorRole role) const;
  Result<TensorType> down(const GgufTensor& tensor);
  TensorType attention_output() const;
  Result<TensorType> gate_or_up(const GgufTensor& tensor, int& counter) const;
  Result<int> layer_of(const GgufTensor& tensor, int counter) const;

  const ModelFacts& facts_;
  const TypeOptions& options_;
  bool tied_ = true;
  int values_ = 0; ///< value-like tensors in all
  int value_ = 0;  ///< seen so far
  int down_ = 0;
  int gate_ = 0;
  int up_ = 0;
};

/// Whether writing `type` without importance weights is refused, as the reference does.
bool needs_importance(std::string_view name, TensorType type, FileType file_type);

} // namespace modeld::quantize
