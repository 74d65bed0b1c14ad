// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output.hpp"
#include "quantize/gguf/gguf_model.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// --dry-run: every tensor with its type and size, and the exact size of the files.
Result<void> show_plan(Output& out, std::string_view family,
                       const std::vector<quantize::GgufModel>& parts,
                       const std::vector<std::filesystem::path>& paths);

/// The files that were written.
void show_written(Output& out, const std::vector<std::filesystem::path>& paths);

} // namespace modeld::daemon
