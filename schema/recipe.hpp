// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "schema/tensor_type.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld {

/// How a variant is made. Equal recipes over equal sources give equal bytes. The canonical text
/// is part of the variant's key, so every field that can change a byte is in it.
struct Recipe {
  /// What the reference calls the file type, upper case: "Q4_K_M", "Q8_0", "BF16", "F16", "F32",
  /// or "AUTO" for the converter's own choice.
  std::string target = "AUTO";
  /// The type between converter and quantizer: "AUTO" or "F32"; empty for a plain conversion.
  std::string via;
  std::optional<TensorType> output_type;
  std::optional<TensorType> embedding_type;
  std::vector<std::pair<std::string, TensorType>> tensor_types; ///< pattern and type, first wins
  bool pure = false;
  bool leave_output_tensor = false;
  bool keep_split = false;
  bool force = false;
  bool mmproj = false;    ///< the vision and audio towers with their projector, not the model
  std::string pre;        ///< pre-tokenizer label, where given by hand
  std::string model_name; ///< general.name, where given by hand

  bool operator==(const Recipe&) const = default;

  /// Checks the target's name; lists the known ones in the error.
  static Result<Recipe> parse_target(std::string_view name);
  /// One line, fixed order, only what differs from the default.
  std::string canonical() const;
};

/// A file type that the reference can write, by its name.
struct TargetInfo {
  std::string_view name;
  std::uint32_t file_type; ///< general.file_type
  TensorType default_type; ///< before the rules for single tensors
  bool quantizer;          ///< made by the quantizer from the converter's file
};

const TargetInfo* find_target(std::string_view name);
std::vector<std::string_view> all_target_names();

} // namespace modeld
