// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/rule_reader.hpp"

namespace modeld::quantize {

/// "tokenizer": a kind, one description or a list of them.
Result<void> read_tokenizers(const RuleReader& in, const toml::table& root, Architecture& arch,
                             const StandardRules& standard);

} // namespace modeld::quantize
