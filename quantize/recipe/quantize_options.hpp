// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/recipe.hpp"
#include "schema/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The texts of llama-quantize's options, read as it reads them. Errors are invalid_argument and
// quote the text.

namespace modeld::quantize {

/// A target by name in any case, or by its general.file_type number: "Q4_K_M", "q4_k_m", "15". The
/// name as it was given; of a number the shortest of its names. "COPY" is one.
std::optional<std::string> parse_target_name(std::string_view text);

/// A tensor type by name in any case.
Result<TensorType> parse_tensor_type(std::string_view text);

/// "pattern=type"; the pattern is lower-cased.
Result<std::pair<std::string, TensorType>> parse_tensor_rule(std::string_view text);

/// Rules separated by white space: the contents of a --tensor-type-file.
Result<std::vector<std::pair<std::string, TensorType>>> parse_tensor_rules(std::string_view text);

/// "key=int:5", "key=float:0.5", "key=bool:true", "key=str:text". Whole numbers become u32 of their
/// absolute value, as in the reference; keys and strings have at most 127 bytes.
Result<GgufKv> parse_kv_override(std::string_view text);

/// "3,7,8"
Result<std::vector<int>> parse_layer_list(std::string_view text);

} // namespace modeld::quantize
