// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/config.hpp"
#include "quantize/convert/source_tensor.hpp"
#include "schema/file_set.hpp"

#include <string>
#include <vector>

namespace modeld::quantize {

struct NamedSource {
  std::string name;
  SourcePtr tensor;
  std::string_view unreadable; ///< element type that we cannot read; tensor is null then
  bool was_fp8 = false;        ///< dequantized from FP8
  bool front = false;          ///< comes out before everything else (repacked 4-bit blocks)
  SourcePtr scale2;            ///< of NVFP4 blocks: one factor for the tensor; may be null
  SourcePtr input_scale;       ///< likewise for its input
  /// Names of the checkpoint's own tensors that it is made of: its own first, then its scales.
  std::vector<std::string> stored = {};
};

/// The weights of a checkpoint in the order in which the reference meets them: by file, then by
/// name as text.
struct Weights {
  std::vector<NamedSource> tensors;
  std::vector<std::string> unlisted; ///< weight files beside them that were left out
  std::vector<std::string> dropped;  ///< tensors that a rule leaves out

  const NamedSource* find(std::string_view name) const;
};

/// Maps the headers, names every fault of the set at once. not_found: no weights at all;
/// unsupported: weights in pickle form only, or an element type that is no number we know.
enum class WeightForm {
  hugging_face, ///< model*.safetensors, with an index or without
  mistral,      ///< consolidated*.safetensors
};
Result<Weights> open_weights(const FileSet& files, WeightForm form = WeightForm::hugging_face);

/// The tensors of one safetensors file, in the order of their data.
Result<std::vector<NamedSource>> open_weight_file(const FileSet& files, const std::string& path);

/// The weight of a dense module of sentence-transformers, "linear.weight" of
/// FOLDER/model.safetensors.
Result<SourcePtr> open_module_weight(const FileSet& files, const std::string& folder);

/// Applies the family's renames and drops.
Result<void> rename_weights(Weights& weights, const ModelConfig& config,
                            const ArchitectureSet& architectures);

} // namespace modeld::quantize
