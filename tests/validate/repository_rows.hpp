// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "builders.hpp"
#include "validate/repository.hpp"

#include <map>
#include <string>
#include <string_view>

namespace modeld::test {

using Files = std::map<std::string, std::string>;

/// Everything that was found in a set of files, as one report.
validate::Report check_all(const Files& files, std::string_view name = "repo",
                           validate::Profile profile = validate::Profile::strict,
                           bool data = false);

/// Checks one row: verdict is "ACCEPT", "WARN RULE" or "REJECT RULE". ACCEPT means no error and,
/// for the rules in question, no warning.
void expect_row(std::string_view id, const Files& files, std::string_view verdict,
                std::string_view name = "repo", bool data = false);

} // namespace modeld::test
