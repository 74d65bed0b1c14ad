// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output.hpp"
#include "quantize/recipe/quantize_model.hpp"
#include "schema/result.hpp"

#include <filesystem>
#include <vector>

namespace modeld::daemon {

/// Substituted types and whatever else was odd, on stderr.
void show_warnings(Output& out, const quantize::QuantizedModel& made);

/// --dry-run: one line for each tensor, then the sizes.
void show_plan(Output& out, const quantize::GgufModel& source,
               const quantize::QuantizedModel& made);

/// The paths that were written.
void show_result(Output& out, const quantize::QuantizedModel& made,
                 const std::vector<std::filesystem::path>& paths);

/// no_space, with the numbers, where the file system of `path` has less than `bytes` free.
Result<void> check_free_space(const std::filesystem::path& path, std::uint64_t bytes);

} // namespace modeld::daemon
