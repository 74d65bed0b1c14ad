// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/encoder/split.hpp"
#include "schema/result.hpp"

#include <string_view>
#include <vector>

namespace modeld::quantize {

/// Runs of one script, as tokenizer.json's UnicodeScripts cuts them: kana count as Han, a space
/// belongs to what stands before it, and spaces at the start to nothing.
Result<std::vector<TextSpan>> script_runs(std::string_view text);

} // namespace modeld::quantize
