// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"

#include <string_view>

namespace modeld::validate {

/// Looks through a Jinja chat template without rendering it (TK-11): what reaches for Python's
/// insides, what imports, what a renderer can be stalled with, and what a reader should see. `what`
/// names the template in messages.
void scan_chat_template(std::string_view text, std::string_view what, const Limits& limits,
                        Report& report);

} // namespace modeld::validate
