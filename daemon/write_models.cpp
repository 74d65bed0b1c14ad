// SPDX-License-Identifier: Apache-2.0
#include "daemon/write_models.hpp"

#include "daemon/quantize_report.hpp"
#include "daemon/work_progress.hpp"
#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/gguf/output_file.hpp"
#include "quantize/gguf/pipeline.hpp"

#include <memory>
#include <string>
#include <vector>

namespace modeld::daemon {

Result<void> write_models(Output& out, std::span<const quantize::GgufModel> models,
                          const ModelFiles& files, std::string_view phase, unsigned threads) {
  Progress progress;
  std::uint64_t total = 0;
  std::vector<std::unique_ptr<quantize::OutputFile>> outputs;
  for (std::size_t i = 0; i < models.size(); ++i) {
    MODELD_ASSIGN(const std::uint64_t size, quantize::gguf_file_size(models[i]));
    total += size;
    MODELD_ASSIGN(auto file, quantize::OutputFile::create(files.outputs[i], files.inputs));
    outputs.push_back(std::move(file));
  }
  MODELD_TRY(check_free_space(files.outputs.front(), total));
  progress.total = total;
  {
    const WorkProgress shown(out, progress, std::string(phase));
    quantize::WriteOptions options;
    options.threads = threads;
    options.progress = &progress;
    options.sources = &files.sources;
    for (std::size_t i = 0; i < models.size(); ++i) {
      MODELD_TRY(quantize::write_gguf(models[i], *outputs[i], options));
    }
  }
  for (auto& file : outputs) {
    MODELD_TRY(file->commit());
  }
  return {};
}

} // namespace modeld::daemon
