// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace modeld::quantize {

/// What a model's id says by the Hub's naming habits: "org/Base-7B-Chat-v1.2".
struct ModelIdParts {
  std::optional<std::string> name;         ///< without the organization
  std::optional<std::string> organization; ///< before the first '/'
  std::optional<std::string> basename;
  std::optional<std::string> finetune;
  std::optional<std::string> version;
  std::optional<std::string> size_label;
};

/// Takes an id apart. `total_parameters` tells a size from a context length ("32K"): 0 unknown,
/// negative for a LoRA adapter.
ModelIdParts model_id_parts(std::string_view id, std::int64_t total_parameters);

/// "gemma-2b-it" to "Gemma 2b It": words that are all lower case get a capital, versions do not.
std::string id_to_title(std::string_view id);

} // namespace modeld::quantize
