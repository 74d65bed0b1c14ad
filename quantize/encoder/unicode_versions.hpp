// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// The tokenizers library (0.22) takes each property of characters from another version of Unicode:
// 16 for its regular expressions, its words and its numbers, 12 for normal forms, 8 for BERT. These
// are the characters with which it differs from utf8proc (Unicode 15) and Oniguruma (14).

namespace modeld::quantize {

/// Assigned or mapped after the tables of normal forms: they stay, and nothing moves past them.
bool is_not_normalized(char32_t c);
/// Marks that StripAccents leaves.
bool is_mark_to_leave(char32_t c);
/// Nonspacing marks that the BERT normalizer leaves.
bool is_mark_to_leave_for_bert(char32_t c);
/// Punctuation by newer tables alone.
bool is_newer_punctuation(char32_t c);
/// Numbers and word characters that utf8proc does not know.
bool is_newer_numeric(char32_t c);
bool is_newer_word_character(char32_t c);
/// The small letter of a capital that utf8proc does not know; else the character itself.
char32_t newer_lowercase(char32_t c);

/// Each character that Oniguruma does not know becomes one of the same classes and of as many
/// bytes, so that offsets of matches hold.
std::string with_known_characters(std::string_view text);
/// Whether there is any.
bool has_newer_characters(std::string_view text);

} // namespace modeld::quantize
