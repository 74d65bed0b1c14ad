// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"

#include <string_view>

// From the text of one file of schema/architectures/ to its rules. This and what it is made of
// (rule_reader.hpp, read_*.hpp) are the only places that know TOML.

namespace modeld::quantize {

/// What all families share; every other file is a family.
inline constexpr std::string_view k_standard_file = "standard.toml";

Result<StandardRules> read_standard_rules(std::string_view text);
Result<Architecture> read_architecture(std::string_view file, std::string_view text,
                                       const StandardRules& standard);

} // namespace modeld::quantize
