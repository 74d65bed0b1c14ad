// SPDX-License-Identifier: Apache-2.0
#include "daemon/write_models.hpp"

#include "daemon/quantize_report.hpp"
#include "daemon/work_progress.hpp"
#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/gguf/pipeline.hpp"

#include <memory>
#include <string>
#include <vector>

namespace modeld::daemon {

namespace {

using Outputs = std::vector<std::unique_ptr<quantize::OutputFile>>;

Result<Outputs> open_outputs(const ModelFiles& files, std::size_t count) {
  Outputs outputs;
  for (std::size_t i = 0; i < count; ++i) {
    MODELD_ASSIGN(auto file,
                  quantize::OutputFile::create(files.outputs[i], files.inputs, files.existing));
    outputs.push_back(std::move(file));
  }
  return outputs;
}

/// Names are given last, all at once, and not to an interrupted work's files.
Result<void> publish(const Outputs& outputs, const Progress& progress) {
  for (const auto& file : outputs) {
    MODELD_TRY(file->sync());
    if (progress.cancel)
      return fail(Errc::cancelled, "writing a GGUF file: interrupted, nothing of it is kept");
  }
  for (const auto& file : outputs) {
    MODELD_TRY(file->commit());
  }
  return {};
}

} // namespace

Result<void> write_models(Output& out, std::span<const quantize::GgufModel> models,
                          const ModelFiles& files, std::string_view phase, unsigned threads) {
  Progress progress;
  std::uint64_t total = 0;
  for (const quantize::GgufModel& model : models) {
    MODELD_ASSIGN(const std::uint64_t size, quantize::gguf_file_size(model));
    total += size;
  }
  progress.total = total;
  // From here on a signal is a reason to tidy up, not to vanish.
  const WorkProgress shown(out, progress, std::string(phase));
  MODELD_ASSIGN(const Outputs outputs, open_outputs(files, models.size()));
  MODELD_TRY(check_free_space(files.outputs.front(), total));
  quantize::WriteOptions options;
  options.threads = threads;
  options.progress = &progress;
  options.sources = &files.sources;
  options.slab_bytes = std::size_t{1} << 20; // less memory, and the last slab keeps nobody waiting
  for (std::size_t i = 0; i < models.size(); ++i) {
    MODELD_TRY(quantize::write_gguf(models[i], *outputs[i], options));
  }
  return publish(outputs, progress);
}

} // namespace modeld::daemon
