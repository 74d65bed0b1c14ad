// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/files.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <string_view>

namespace modeld::quantize {

/// The tokenizer.json that transformers makes of vocab.json and merges.txt for a byte-level class:
/// Qwen2's with NFC and its own pattern, all others with GPT-2's. `settings` may be null.
Result<boost::json::object> byte_level_definition(TokenizerFiles& files,
                                                  std::string_view class_name,
                                                  const boost::json::object* settings);

/// The one that it makes of vocab.txt for BERT's classes.
Result<boost::json::object> wordpiece_definition(TokenizerFiles& files,
                                                 const boost::json::object* settings);

} // namespace modeld::quantize
