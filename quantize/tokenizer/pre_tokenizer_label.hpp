// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/hf_tokenizer.hpp"
#include "quantize/tokenizer/vocabulary.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// The text that tells pre-tokenizers apart.
std::string_view check_text();
/// SHA-256 of "[1, 22, 333]", in hexadecimal.
std::string check_hash(const std::vector<std::uint32_t>& ids);
/// The label for a hash; the last row of the table wins.
std::optional<std::string> label_of_hash(std::string_view hash);

/// tokenizer.ggml.pre of a tokenizer: the request's own, else by the hash of the check text.
/// unsupported for a hash that nobody knows: names the nearest known definition and what differs.
Result<std::string> pre_tokenizer_label(const TokenizerContext& context,
                                        const HfTokenizer& tokenizer);

} // namespace modeld::quantize
