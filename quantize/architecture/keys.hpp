// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"

#include <string_view>
#include <vector>

namespace modeld::quantize {

/// Reads one line of a `keys` list (doc/adding-a-model.md). A line "@name" stands for a list of
/// `groups`; `arch` goes in front of keys that belong to the architecture.
Result<void> read_key_line(std::string_view line, std::string_view arch,
                           const std::map<std::string, std::vector<KeyRule>, std::less<>>& groups,
                           std::vector<KeyRule>& out);

/// "name = expr".
Result<Assignment> read_assignment(std::string_view text);
/// "name(expr, ...)" or "name".
Result<OpRule> read_op(std::string_view text);

} // namespace modeld::quantize
