// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace modeld::validate {

/// The character that a text begins with, well-formed UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF); no bytes where there is none.
struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};
Utf8Character first_character(std::string_view text);

/// Characters that act on a terminal or on the eye instead of being seen (Unicode 15, categories
/// Cc, Cf, Zl and Zp as far as they hide or reorder text).
bool is_hidden(char32_t code);

/// Longest piece of a file's own text in a message, in characters (validation.md 0.5).
inline constexpr std::size_t k_quoted_characters = 200;

/// Text out of a stranger's file, made fit for a terminal, a log or a report: hidden characters
/// become \n, \t or \u{XXXX}, bytes that are no UTF-8 become \xHH, a backslash stays as it is, and
/// what is beyond `limit` characters is cut and marked with "...".
std::string escape_text(std::string_view text, std::size_t limit = k_quoted_characters);

/// escape_text between single quotes: how messages name a thing.
std::string quoted(std::string_view text);

/// Where the first byte that is not part of well-formed UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF) stands; text.size() where there is none.
std::size_t utf8_valid_prefix(std::string_view text);

/// A quick look at a short string: true where it is surely well-formed UTF-8 without NUL, false
/// where only a closer look can tell. `readable` bytes, length or more, may be loaded from `at`.
bool is_clean_utf8(const char* at, std::size_t length, std::size_t readable);

/// Classes of code points that names should not hold; flags of what valid UTF-8 text contains.
struct TextTraits {
  bool nul = false;
  bool control = false; ///< C0, C1 or DEL, NUL included
  bool bidi = false;    ///< U+202A..202E, U+2066..2069
};
TextTraits text_traits(std::string_view text);

} // namespace modeld::validate
