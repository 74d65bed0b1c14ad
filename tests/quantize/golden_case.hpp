// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "quantize/recipe/quantize_model.hpp"

#include <boost/json.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// tests/golden/<case>/expected.json, and what the quantizer's tests need of it.
class GoldenCase {
public:
  explicit GoldenCase(std::filesystem::path folder);

  const std::string& name() const { return name_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::string model_dir() const; ///< the snapshot's folder
  std::string pre() const;       ///< pre-tokenizer label to give, or empty
  /// Runs of the quantizer: outputs with equal argv that are parts of one split come as one group.
  std::vector<std::vector<const boost::json::object*>> quantize_runs() const;
  /// The files that make up an input: one, or all parts of a split, in order.
  std::vector<const boost::json::object*> input_files(std::string_view input) const;

private:
  std::filesystem::path folder_;
  std::string name_;
  boost::json::value expected_;
};

/// Every case that has runs of the quantizer.
std::vector<GoldenCase> golden_quantize_cases();

/// A model with the metadata and tensors that the file is said to have, and no data. Arrays of
/// which only a digest is given are filled with zeros.
quantize::GgufModel described_model(const boost::json::object& output);

/// The request that a run's argv and type stand for; paths are relative to the case. Errors are
/// those of wrong usage. `dry_run` tells whether --dry-run is among them.
Result<quantize::QuantizeRequest> request_of(const GoldenCase& golden,
                                             const boost::json::object& run, bool& dry_run);

} // namespace modeld::test
