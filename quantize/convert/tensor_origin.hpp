// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace modeld::quantize {

/// Where an output tensor comes from.
struct TensorOrigin {
  std::vector<std::string> sources; ///< the checkpoint's own names; none: made by the converter
  std::string operations;           ///< "rotary_halves(heads)", separated by ", "; empty: as it is
};

} // namespace modeld::quantize
