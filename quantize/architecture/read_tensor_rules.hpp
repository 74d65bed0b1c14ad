// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/rule_reader.hpp"

namespace modeld::quantize {

/// What becomes of the checkpoint's tensors: "tensors" with their "groups", "rename", "drop",
/// "keep" and "generate".
Result<void> read_tensor_rules(const RuleReader& in, const toml::table& root, Architecture& arch);

} // namespace modeld::quantize
