// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// tokenizer.json's "decoder": from tokens back to text. Without one the tokens stand with spaces
/// between them. Unknown decoders change nothing.
std::string decode_tokens(const boost::json::value& decoder, std::vector<std::string> tokens);

/// transformers' clean_up_tokenization: " ." becomes ".", " n't" becomes "n't" and so on.
std::string without_token_spaces(std::string text);

/// Byte-level BPE writes each byte as one printable character; this is that character.
char32_t character_of_byte(unsigned char byte);
/// The other way round; -1 for characters that stand for no byte.
int byte_of_character(char32_t character);
/// Bytes as byte-level text.
std::string byte_level_text(std::string_view bytes);

} // namespace modeld::quantize
