// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/config.hpp"
#include "schema/file_set.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What a checkpoint says about its own quantization, in config.json or beside it.

namespace modeld::quantize {

/// Members of an object of the configuration; null and empty where there is none.
class Settings {
public:
  explicit Settings(const boost::json::object* object) : object_(object) {}
  const boost::json::value* find(std::string_view name) const;
  std::string text(std::string_view name) const;
  const boost::json::object* object(std::string_view name) const;
  std::int64_t whole(std::string_view name, std::int64_t fallback) const;
  /// A list of sizes; empty where it is none.
  std::vector<std::uint64_t> sizes(std::string_view name) const;

private:
  const boost::json::object* object_;
};

struct QuantizationSettings {
  boost::json::object part;   ///< quantization_config
  boost::json::object groups; ///< config_groups of compressed-tensors
  std::string method;         ///< "fp8", "gptq", ...; empty where nothing says one
  std::string format;         ///< of compressed-tensors
  bool nvfp4 = false;
  bool compressed_nvfp4 = false; ///< under the names of compressed-tensors
  bool mxfp4 = false;
};

/// malformed where hf_quant_config.json is no JSON.
Result<QuantizationSettings> read_quantization(const ModelConfig& config, const FileSet& files);

} // namespace modeld::quantize
