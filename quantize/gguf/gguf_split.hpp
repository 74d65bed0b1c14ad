// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "quantize/gguf/gguf_source.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

// One GGUF file into several and back, byte for byte as llama-gguf-split does. (The converter's own
// way to split, convert.hpp's split_model, orders the keys differently.)

namespace modeld::quantize {

struct SplitLimits {
  std::uint64_t max_tensors = 128; ///< in one part; only where max_bytes is 0
  std::uint64_t max_bytes = 0;     ///< of padded tensor data in one part; 0: by tensors
  bool no_tensor_first = false;    ///< the first part has the metadata alone
};

/// "128M" or "4G", thousands.
Result<std::uint64_t> parse_split_limit(std::string_view text);

/// The parts, in order. The first has the metadata; each has its number, how many tensors there are
/// in all, and how many parts. invalid_argument: the model is itself a part; a limit that would
/// leave a part without a tensor.
Result<std::vector<GgufModel>> split_gguf(const GgufModel& model, const SplitLimits& limits);

/// All parts in one: split.count becomes 0, which tells readers that there are no others.
/// invalid_argument where the source is no part of a split.
Result<GgufModel> merge_gguf(const GgufSource& source);

} // namespace modeld::quantize
