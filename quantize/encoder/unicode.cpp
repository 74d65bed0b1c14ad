// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/unicode.hpp"

#include "quantize/encoder/unicode_versions.hpp"
#include "quantize/encoder/utf8_text.hpp"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

namespace modeld::quantize {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

/// Symbols that are alphabetic all the same: circled and squared letters.
bool is_enclosed_letter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

} // namespace

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO || is_newer_numeric(c);
}

bool is_punctuation(char32_t c) {
  const auto kind = category(c);
  const bool formerly = c == 0x166D || c == 0x111C9;
  return is_ascii_punctuation(c) || formerly ||
         (kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO && !is_newer_punctuation(c));
}

bool is_mark(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_other(char32_t c) {
  const auto kind = category(c);
  // The library's tables end before these format characters were assigned.
  const bool newer =
      c == 0x8E2 || c == 0x890 || c == 0x891 || (c >= 0x13430 && c <= 0x1343F) || c == 0x110CD;
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CO ||
         (kind == UTF8PROC_CATEGORY_CF && !newer);
}

bool is_word_character(char32_t c) {
  const auto kind = category(c);
  return is_letter(c) || is_mark(c) || kind == UTF8PROC_CATEGORY_ND ||
         kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_PC || c == 0x200C ||
         c == 0x200D || is_enclosed_letter(c) || is_newer_word_character(c);
}

bool is_cjk_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

namespace {

void append_normal_form(std::string& out, std::string_view text, NormalForm form) {
  if (text.empty()) return;
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::nfc || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* mapped = nullptr;
  const auto n =
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the library's type for bytes
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(options));
  // The text is valid UTF-8, so only memory can fail.
  if (n < 0) throw std::bad_alloc();
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  out.append(owner.get(), owner.get() + n);
}

} // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  std::string out;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    if (!is_not_normalized(next_code_point(text, at))) continue;
    append_normal_form(out, text.substr(begin, before - begin), form);
    out += text.substr(before, at - before);
    begin = at;
  }
  append_normal_form(out, text.substr(begin), form);
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c == 0x130) {
      // The one lower-case form of two characters.
      out += "i\u0307";
      continue;
    }
    const auto known = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    append_utf8(out, newer_lowercase(known));
  }
  return out;
}

} // namespace modeld::quantize
