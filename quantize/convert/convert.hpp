// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/tensor_origin.hpp"
#include "quantize/gguf/gguf_model.hpp"
#include "quantize/metadata/metadata.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// From a checkpoint of the Hugging Face form to the GGUF file that the reference's converter
// (llama.cpp v0.4.0) makes of it, as a GgufModel: everything is known and checked, no weight is
// read yet. The FileSet must live as long as the model.

namespace modeld::quantize {

class ArchitectureSet;

struct ConvertOptions {
  /// auto, f32, f16, bf16, q8_0, tq1_0 or tq2_0, in any case.
  std::string outtype = "auto";
  std::string pre; ///< pre-tokenizer label by hand; empty: computed
  std::optional<std::string> model_name;
  std::optional<boost::json::object> metadata; ///< --metadata
  /// Write the reference's file also where it is known to be wrong.
  bool force = false;
  bool vocab_only = false;
  bool big_endian = false;
  bool no_vocabulary = false;  ///< leave the tokenizer's keys out; the rest is not changed by it
  bool ignore_card = false;    ///< leave a malformed model card out
  bool no_mtp = false;         ///< --no-mtp: without the layers for multi-token prediction
  bool mtp_only = false;       ///< --mtp: those layers alone
  bool fp8_as_q8 = false;      ///< --fp8-as-q8: what was FP8 becomes Q8_0
  bool fuse_gate_up = false;   ///< --fuse-gate-up-exps
  bool mistral_format = false; ///< --mistral-format: params.json, consolidated*.safetensors
  /// The chat template that goes with a mistral-common vocabulary, where the checkpoint is in
  /// Mistral's own form and has none (not so: --disable-mistral-community-chat-template).
  bool community_template = true;
  std::string adapter;        ///< one of ConvertResult::adapters instead of the model
  bool dense_modules = false; ///< --sentence-transformers-dense-modules
  bool mmproj = false;        ///< --mmproj: the vision and audio towers with their projector
};

struct ConvertResult {
  GgufModel model;
  MetadataResult metadata; ///< what file names are made of
  std::string file_type;   ///< "BF16", as it stands in file names
  NamedFor named_for = NamedFor::model;
  std::string family; ///< title of the family's data file
  std::vector<std::string> warnings;
  /// Adapters that the checkpoint holds beside the model; each is a conversion of its own, which
  /// the reference writes as "lora-NAME-FILE".
  std::vector<std::string> adapters;
  std::vector<std::string> left_out; ///< source tensors that a rule leaves out
  std::vector<TensorOrigin> origins; ///< of each tensor of the model

  /// The name that the reference gives to the output.
  std::string file_name() const;
};

/// not_found: a file is missing; malformed: a file breaks its format; unsupported: the
/// architecture, an element type, a tensor that no rule knows (all of them are listed); conflict:
/// files or keys contradict each other. Nothing is written anywhere.
Result<ConvertResult> convert(const FileSet& files, const ConvertOptions& options);
/// The same with other families than the program's own.
Result<ConvertResult> convert(const FileSet& files, const ConvertOptions& options,
                              const ArchitectureSet& architectures);

struct AdapterOptions {
  std::string outtype = "f32"; ///< f32, f16, bf16, q8_0 or auto, in any case
  bool force = false;          ///< write the reference's file also where it is known to be wrong
  bool big_endian = false;
  bool ignore_card = false; ///< leave a malformed model card out
};

/// A LoRA adapter of PEFT as the GGUF file that the reference's convert_lora_to_gguf makes of it.
/// Of the base model only the small files are read. Both must live as long as the model. Errors are
/// those of convert(), and unsupported for adapters that are no plain LoRA.
Result<ConvertResult> convert_adapter(const FileSet& adapter, const FileSet& base,
                                      const AdapterOptions& options);
Result<ConvertResult> convert_adapter(const FileSet& adapter, const FileSet& base,
                                      const AdapterOptions& options,
                                      const ArchitectureSet& architectures);

/// Whether the configuration names a model that some family converts, with options.mmproj one whose
/// projector some family converts. Looks at config.json and the small files beside it, not at
/// weights or the vocabulary. Errors as those of convert.
Result<void> check_architecture(const FileSet& files, const ConvertOptions& options);

/// One model as several, by number of tensors or bytes of tensor data, as the reference's
/// --split-max-tensors and --split-max-size do. Zero: no limit. `empty_first`: the first part has
/// the metadata and no tensor. A single part comes back as it went in.
std::vector<GgufModel> split_model(GgufModel model, std::uint64_t max_tensors,
                                   std::uint64_t max_bytes, bool empty_first);
/// "300M": a number with K, M or G (thousands) behind it.
Result<std::uint64_t> parse_split_size(std::string_view text);

/// A class name that can be converted, and its family.
struct SupportedClass {
  std::string class_name;
  std::string arch;
  std::string title;
  bool projector = false; ///< what --mmproj makes
};
/// Sorted by class name; models first, then projectors.
Result<std::vector<SupportedClass>> supported_classes();

} // namespace modeld::quantize
