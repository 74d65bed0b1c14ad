// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/byte_sink.hpp"
#include "schema/file_set.hpp"
#include "schema/progress.hpp"
#include "schema/result.hpp"

#include <cstddef>

namespace modeld::quantize {

struct WriteOptions {
  /// Threads that read, transform and quantize rows; the caller's thread writes. 0: one for each
  /// CPU.
  unsigned threads = 0;
  /// Output bytes of one slab, rounded to whole rows, at least one. At most 2 * threads + 2 slabs
  /// are in memory at a time, whatever the size of the model (design rule 9).
  std::size_t slab_bytes = std::size_t{4} << 20;
  Progress* progress = nullptr; ///< may be null; done and total are bytes of the file
  /// Whose mapped bytes are let go of as the work goes on, so that memory does not grow with the
  /// model; may be null.
  const FileSet* sources = nullptr;
};

/// Writes the whole file, header first and in file order, to `sink`. The bytes do not depend on the
/// number of threads. Stops within 100 ms of progress->cancel (Errc::cancelled), at the first error
/// of the sink, and at the first tensor in file order that cannot be read: that error names the
/// tensor and its row.
Result<void> write_gguf(const GgufModel& model, ByteSink& sink, const WriteOptions& options);

} // namespace modeld::quantize
