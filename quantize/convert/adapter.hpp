// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/convert.hpp"
#include "quantize/convert/weights.hpp"
#include "schema/file_set.hpp"

#include <cstdint>
#include <string>
#include <vector>

// LoRA adapters as PEFT saves them: adapter_config.json, adapter_model.safetensors.

namespace modeld::quantize {

struct AdapterConfig {
  float alpha = 0;
  /// The tokens behind which an "activated" adapter takes effect; empty: from the start.
  std::vector<std::uint32_t> invocation_tokens;
  std::string base_model; ///< what it says it was made for; may be empty
};

/// not_found: no adapter_config.json; malformed: it lacks what is needed; unsupported: a method of
/// PEFT that is no plain LoRA, or one that the reference would convert wrongly (not so with
/// `force`).
Result<AdapterConfig> read_adapter_config(const FileSet& files, bool force);

/// The changes by the names of the weights that they change, as LowRank tensors, norms first; in
/// the order in which the file has them. malformed: a factor without its other one, factors that do
/// not fit; unsupported: tensors that are no part of a LoRA.
Result<Weights> open_adapter(const FileSet& files);

} // namespace modeld::quantize
