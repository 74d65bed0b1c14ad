// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"
#include "schema/file_set.hpp"

#include <boost/json/object.hpp>

#include <map>
#include <string>
#include <string_view>

// A checkpoint's configuration as the reference's converter sees it: config.json, completed by the
// defaults of the configuration class (transformers 4.57.6) where that is known, with the text
// part of a multimodal model moved to the root.

namespace modeld::quantize {

struct ModelConfig {
  boost::json::object raw;    ///< config.json as it is
  boost::json::object values; ///< what rules see
  /// What rules may ask beside the configuration: `class` (of "architectures"), `repository` (the
  /// folder's name), `files` (names in the top folder), `tokenizer_config`, `generation_config`,
  /// `raw` (config.json as it is), `modules` (sentence-transformers), `pooling_type` (their
  /// number in GGUF), `tensors` (names in the checkpoint) and the options `no_mtp`, `mtp_only`,
  /// `adapter` (the name of the one that is asked for), `dense` (where they are asked for: the
  /// dense layers of sentence-transformers by their place in GGUF). Of a projector: `processor`
  /// (preprocessor_config.json with processor_config.json over it).
  boost::json::object facts;
  std::string class_name;
  const Architecture* family = nullptr;
};

/// Names of rules: locals first, then facts, then the configuration, then facts that cost reading a
/// large file (`tokenizer_json_tokens`: how many tokens tokenizer.json has; `tokenizer_vocab`: its
/// vocabulary by text; `added_tokens`: numbers of added tokens by text; `tekken_special`: likewise
/// of tekken.json; `readme`: the model card).
class ConfigScope final : public ExprScope {
public:
  explicit ConfigScope(const boost::json::object& values) : values_(&values) {}
  ConfigScope(const ModelConfig& config, const FileSet* files = nullptr)
      : values_(&config.values), facts_(&config.facts), files_(files) {}
  const boost::json::value* find(std::string_view name) const override;
  void set(std::string name, boost::json::value value);

private:
  const boost::json::value* find_large(std::string_view name) const;

  const boost::json::object* values_;
  const boost::json::object* facts_ = nullptr;
  const FileSet* files_ = nullptr;
  mutable std::map<std::string, boost::json::value, std::less<>> locals_;
};

/// Classes of checkpoints in Mistral's own form, which name none.
constexpr std::string_view k_params_class = "params.json";
constexpr std::string_view k_params_moe_class = "params.json with experts";
constexpr std::string_view k_params_vision_class = "params.json with a vision encoder";

/// not_found: no config.json; malformed: it is no JSON object, or has no number of layers;
/// unsupported: a class that no family reads, with those most like it as a hint.
/// `facts` are the options that rules may ask for. With `mistral_format` among them, params.json
/// stands for config.json, and the class is one of k_params_class, ....
///
/// For a projector, `vision` and `audio` are the towers' own configurations, and `text_width` is
/// the width of the text model; nothing moves to the root.
Result<ModelConfig> load_config(const FileSet& files, const ArchitectureSet& architectures,
                                FamilyKind kind = FamilyKind::model,
                                boost::json::object facts = {});

/// Sets a key, or a member of one: "vision.image_size". malformed where a part is no object.
Result<void> assign(boost::json::object& values, std::string_view name, boost::json::value value);

/// Runs the family's assignments; facts must be complete.
Result<void> prepare_config(ModelConfig& config, const FileSet& files);

/// JSON as Python reads it: NaN and Infinity (which become null) are taken too.
Result<boost::json::object> parse_python_json(std::string_view text, std::string_view what);

} // namespace modeld::quantize
