// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace modeld::quantize {

/// An importance matrix, ready for use: for each tensor the mean squared activation of each input
/// column. A stacked tensor of E experts has E rows of ne[0] values, one after the other.
/// imatrix.hpp reads the files.
struct Importance {
  std::map<std::string, std::vector<float>> entries; ///< by tensor name; finite, >= 0
  std::string file;                                  ///< as it is to stand in the metadata
  std::vector<std::string> datasets;                 ///< what it was calibrated on
  int chunks = 0;                                    ///< of text that were seen; 0 unknown
  std::vector<std::string> warnings;                 ///< what the reader found odd
};

} // namespace modeld::quantize
