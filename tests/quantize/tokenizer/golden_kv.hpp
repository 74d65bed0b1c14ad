// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// Golden metadata as tests/golden/README.md describes it: scalars by value, arrays by element type,
// count and the SHA-256 of their little-endian bytes.

namespace modeld::test {

boost::json::value read_json_file(const std::filesystem::path& path);

/// A line for each value, equal for equal values: "key TYPE value" or "key ARRAY TYPE n sha256".
std::string describe(const quantize::GgufKv& kv);
std::string describe_golden(const boost::json::object& kv);

/// Those whose key starts with one of the prefixes, in order.
std::vector<std::string> describe(const std::vector<quantize::GgufKv>& kv,
                                  const std::vector<std::string>& prefixes);
std::vector<std::string> describe_golden(const boost::json::array& kv,
                                         const std::vector<std::string>& prefixes);

} // namespace modeld::test
