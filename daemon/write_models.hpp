// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output.hpp"
#include "quantize/gguf/gguf_model.hpp"
#include "quantize/gguf/output_file.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <filesystem>
#include <span>
#include <string_view>

namespace modeld::daemon {

/// Where models go, and what they are made of.
struct ModelFiles {
  std::span<const std::filesystem::path> outputs; ///< one for each model
  std::span<const std::filesystem::path> inputs;  ///< files that no output may be
  const FileSet& sources;                         ///< behind the models' tensors
  quantize::ExistingFile existing = quantize::ExistingFile::replace;
};

/// Writes each model to its file with progress on stderr. The files appear under their names only
/// when all are written: nothing half there, also on Ctrl-C. Refuses before it starts where the
/// space does not suffice. phase: what the progress line says. threads: 0 for one for each CPU.
Result<void> write_models(Output& out, std::span<const quantize::GgufModel> models,
                          const ModelFiles& files, std::string_view phase, unsigned threads);

} // namespace modeld::daemon
