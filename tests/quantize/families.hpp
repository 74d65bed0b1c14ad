// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"

#include <filesystem>

namespace modeld::test {

/// The families of a folder's files instead of the program's own.
Result<quantize::ArchitectureSet> load_families(const std::filesystem::path& folder);

} // namespace modeld::test
