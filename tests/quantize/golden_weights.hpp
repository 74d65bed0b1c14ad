// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Weights of golden cases: floating-point data is a stream defined by the tensor's name alone
// (tests/golden/materialize.py states the rule), other data is kept in the case.

namespace modeld::test {

struct GoldenTensor {
  std::string name;
  std::string dtype; ///< as safetensors names it
  std::vector<std::uint64_t> shape;
  std::optional<std::string> kept; ///< its bytes, where they are no stream
};

/// The tensors of one entry of a case's weights.json, in the order of its header.
std::vector<GoldenTensor> tensors_of(const boost::json::object& file);
/// The file itself, checked against its digest; throws where it does not come out right.
std::string golden_weight_file(const boost::json::object& file);
/// A file of that header, with nothing kept.
std::string golden_stream_file(const std::string& header);
/// A new file of these tensors, in the order given.
std::string safetensors_file(const std::vector<GoldenTensor>& tensors);

} // namespace modeld::test
