// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The general.* keys: who made the model, out of what, under which licence. Taken from the folder's
// name, config.json, the model card and generation_config.json by the reference's heuristics, in
// its order. Pure functions of the files; any thread.

namespace modeld::quantize {

/// Elements of all tensors, as the size label needs them. Negative: a LoRA adapter.
struct ParameterCount {
  std::int64_t total = 0;
  std::int64_t shared = 0; ///< outside experts
  std::int64_t expert = 0; ///< of one expert, summed over its layers
  std::uint64_t expert_count = 0;
};

struct MetadataRequest {
  ParameterCount parameters;
  /// --metadata: an object with general.* keys; they win over everything but model_name.
  std::optional<boost::json::object> override_file;
  /// --model-name.
  std::optional<std::string> model_name;
  /// Leave a malformed model card out instead of failing.
  bool ignore_card = false;
};

struct MetadataResult {
  /// From general.sampling.* and general.name on, in order. general.architecture and general.type
  /// stand before them and are the converter's.
  std::vector<GgufKv> kv;
  std::vector<std::string> warnings;
  /// What the names of output files are made of.
  std::optional<std::string> name;
  std::optional<std::string> basename;
  std::optional<std::string> finetune;
  std::optional<std::string> version;
  std::optional<std::string> size_label;
};

/// Reads README.md, config.json and generation_config.json of `files`. malformed: a card or an
/// override that the reference would fail on, or write wrongly; the message names the key.
Result<MetadataResult> read_metadata(const FileSet& files, const MetadataRequest& request);

/// "8x7B", "337K": at least two digits where there are decimals to show.
std::string size_label(const ParameterCount& parameters);

enum class NamedFor { model, vocabulary, adapter, prediction, projector };

/// The file name that the reference gives where it is only told a folder: "Llama-2-7B-hf-F16.gguf".
/// `output_type` is the file type as in "F16", "Q8_0"; not used for a vocabulary.
std::string default_file_name(const MetadataResult& metadata, std::string_view output_type,
                              NamedFor kind);

/// Fills {ftype}, {FTYPE}, {outtype}, {OUTTYPE} and {} of a file name given by hand.
Result<std::string> fill_file_name(std::string_view pattern, std::string_view output_type);

} // namespace modeld::quantize
