// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/memory_files.hpp"

#include <filesystem>
#include <string>

namespace modeld::test {

/// The snapshot of a golden case with its weights, by the rule that tests/golden/materialize.py
/// states: floating-point data is a stream defined by the tensor's name, other data is kept.
/// Throws where a weight file does not come out with its digest.
MemoryFiles golden_snapshot(const std::filesystem::path& case_folder, const std::string& model_dir);

/// A safetensors file out of its header's text, with data by the same rule.
std::string stream_file(const std::string& header);

} // namespace modeld::test
