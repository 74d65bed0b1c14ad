// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/convert.hpp"

#include <boost/json/array.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace modeld::test {

/// What the arguments of the reference's converter ask for.
struct ConvertRun {
  quantize::ConvertOptions options;
  std::uint64_t split_tensors = 0;
  std::uint64_t split_bytes = 0;
  bool empty_first = false;
  std::string unknown; ///< an option that is not understood here
};

/// Paths are relative to `folder`.
ConvertRun run_of(const boost::json::array& argv, const std::filesystem::path& folder);

} // namespace modeld::test
