// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// UTF-8 as the reference's language sees text: strict decoding, text-mode line ends, and what
// counts as a space, a letter or a digit there. Unicode data from utf8proc.

namespace modeld::quantize {

/// The offset of the first byte that is not strict UTF-8 (no surrogates, no overlong forms).
std::optional<std::size_t> find_invalid_utf8(std::string_view bytes);

/// Decodes the code point at `at` and moves past it. The text is valid UTF-8, at < text.size().
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_utf8(std::string& out, char32_t code_point);
std::u32string to_utf32(std::string_view text);
std::string to_utf8(std::u32string_view text);

/// "\r\n" and "\r" become "\n".
std::string with_unix_line_ends(std::string_view text);
/// Lines as str.splitlines() cuts them: also at VT, FF, FS, GS, RS, NEL, LS and PS.
std::vector<std::string> split_lines(std::string_view text);

/// str.isspace() for one character.
bool is_python_space(char32_t c);
bool is_letter(char32_t c);        ///< general category L*
bool is_decimal_digit(char32_t c); ///< general category Nd
/// str.strip(): white space off both ends.
std::string_view stripped(std::string_view text);
/// str.split(): the parts between runs of white space.
std::vector<std::string_view> split_at_spaces(std::string_view text);

/// str.islower() and str.title() of a word.
bool is_lower_word(std::string_view word);
std::string title_cased(std::string_view word);

} // namespace modeld::quantize
