// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/tokenizer.hpp"

#include <boost/json/object.hpp>

#include <string_view>

namespace modeld::test {

/// How the families of the golden cases find their vocabulary, for tests of the tokenizers alone.
quantize::TokenizerRule golden_rule(std::string_view architecture,
                                    const boost::json::object& config);

/// config.json as the converter sees it, as far as tokenizers ask: text_config at the root, and
/// the class's default for vocab_size.
boost::json::object golden_config(const boost::json::object& raw);

} // namespace modeld::test
