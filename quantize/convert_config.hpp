// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture.hpp"
#include "schema/file_set.hpp"

#include <boost/json/object.hpp>

#include <map>
#include <string>

// A checkpoint's configuration as the reference's converter sees it: config.json, completed by the
// defaults of the configuration class (transformers 4.57.6) where that is known, with the text
// part of a multimodal model moved to the root.

namespace modeld::quantize {

struct ModelConfig {
  boost::json::object raw;    ///< config.json as it is
  boost::json::object values; ///< what rules see
  std::string class_name;     ///< of "architectures"
  const Architecture* family = nullptr;
};

/// Names of rules: locals first, then the configuration.
class ConfigScope final : public ExprScope {
public:
  explicit ConfigScope(const boost::json::object& config) : config_(config) {}
  const boost::json::value* find(std::string_view name) const override;
  void set(std::string name, boost::json::value value);

private:
  const boost::json::object& config_;
  std::map<std::string, boost::json::value, std::less<>> locals_;
};

/// not_found: no config.json; malformed: it is no JSON object, or has no number of layers;
/// unsupported: a class that no family reads, with those most like it as a hint.
Result<ModelConfig> load_config(const FileSet& files, const ArchitectureSet& architectures);

/// JSON as Python reads it: NaN and Infinity (which become null) are taken too.
Result<boost::json::object> parse_python_json(std::string_view text, std::string_view what);

} // namespace modeld::quantize
