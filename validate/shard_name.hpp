// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace modeld::validate {

/// "model-00002-of-00003.safetensors": the parts of a numbered shard's name.
struct NumberedName {
  std::string_view prefix; ///< "model"
  std::uint32_t number = 0;
  std::uint32_t total = 0;
};

/// Exactly five digits each, as every writer of both formats has it; `extension` with its dot.
std::optional<NumberedName> numbered_name(std::string_view name, std::string_view extension);

} // namespace modeld::validate
