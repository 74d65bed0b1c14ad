// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/hf_tokenizer.hpp"

#include <string>

namespace modeld::quantize {

/// The known tokenizer whose definition has most in common with this one.
struct Nearest {
  std::string label;
  /// "; it has X where that has Y", or what else to say after the label.
  std::string difference;
};
Nearest nearest_definition(const HfTokenizer& tokenizer);

} // namespace modeld::quantize
