// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// Character classes as the tokenizers library has them, and Unicode normalization. Data from
// utf8proc; White_Space and the rest are listed where it has none.

namespace modeld::quantize {

bool is_white_space(char32_t c); ///< Unicode White_Space
bool is_numeric(char32_t c);     ///< Nd, Nl, No
bool is_punctuation(char32_t c); ///< ASCII punctuation and symbols, and P*
bool is_mark(char32_t c);        ///< M*
bool is_nonspacing_mark(char32_t c);
bool is_other(char32_t c);          ///< Cc, Cf, Co
bool is_word_character(char32_t c); ///< \w of Rust's regex: letters, marks, digits, connectors
bool is_cjk_ideograph(char32_t c);  ///< what BERT puts spaces around

enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::string normal_form(std::string_view text, NormalForm form);
/// Character by character, without context (no final sigma).
std::string lowercase(std::string_view text);

} // namespace modeld::quantize
