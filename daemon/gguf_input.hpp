// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_source.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <filesystem>
#include <memory>
#include <vector>

namespace modeld::daemon {

/// A GGUF file on the disk, or all parts of a split, mapped for as long as this lives.
struct GgufInput {
  std::unique_ptr<FileSet> files;
  quantize::GgufSource source;
  std::vector<std::filesystem::path> paths; ///< of the parts
};

/// Opens the file, and where its name and metadata say so the parts beside it.
Result<GgufInput> open_gguf_input(const std::filesystem::path& path);

/// One file, mapped.
Result<std::unique_ptr<FileSet>> open_one_file(const std::filesystem::path& path);

} // namespace modeld::daemon
