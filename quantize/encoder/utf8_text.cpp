// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/utf8_text.hpp"

#include <utf8proc.h>

#include <array>

namespace modeld::quantize {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_cased(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL ||
         kind == UTF8PROC_CATEGORY_LT;
}

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

/// Length of the sequence that starts with this byte, 0 where none does.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

} // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[at]);
    const std::size_t n = sequence_length(lead);
    if (n == 0 || n > bytes.size() - at) return at;
    for (std::size_t i = 1; i < n; ++i) {
      if ((static_cast<unsigned char>(bytes[at + i]) & 0xC0U) != 0x80U) return at;
    }
    const auto second = n > 1 ? static_cast<unsigned char>(bytes[at + 1]) : 0U;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return at;
    }
    at += n;
  }
  return std::nullopt;
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t n = sequence_length(lead);
  if (n <= 1 || n > text.size() - at) {
    ++at;
    return lead;
  }
  constexpr std::array<unsigned, 5> k_lead_bits{0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t c = lead & k_lead_bits.at(n);
  for (std::size_t i = 1; i < n; ++i) {
    c = (c << 6U) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  }
  at += n;
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((c >> shift) & 0x3FU));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0U | (c >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (c >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::u32string to_utf32(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    out += next_code_point(text, at);
  }
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    append_utf8(out, c);
  }
  return out;
}

std::string with_unix_line_ends(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
      continue;
    }
    out += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return out;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    const char32_t c = next_code_point(text, at);
    if (!ends_line(c)) continue;
    lines.emplace_back(text.substr(start, before - start));
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    start = at;
  }
  if (start < text.size()) lines.emplace_back(text.substr(start));
  return lines;
}

bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_letter(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal_digit(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

std::vector<std::string_view> split_at_spaces(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t start = std::string_view::npos;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    const bool space = is_python_space(next_code_point(text, at));
    if (!space && start == std::string_view::npos) start = before;
    if (space && start != std::string_view::npos) {
      parts.push_back(text.substr(start, before - start));
      start = std::string_view::npos;
    }
  }
  if (start != std::string_view::npos) parts.push_back(text.substr(start));
  return parts;
}

std::string_view stripped(std::string_view text) {
  const auto parts = split_at_spaces(text);
  if (parts.empty()) return text.substr(0, 0);
  const auto first = static_cast<std::size_t>(parts.front().data() - text.data());
  const auto last = static_cast<std::size_t>(parts.back().data() - text.data());
  return text.substr(first, last + parts.back().size() - first);
}

bool is_lower_word(std::string_view word) {
  bool any = false;
  for (std::size_t at = 0; at < word.size();) {
    const auto kind = category(next_code_point(word, at));
    if (kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LT) return false;
    any = any || kind == UTF8PROC_CATEGORY_LL;
  }
  return any;
}

std::string title_cased(std::string_view word) {
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0; at < word.size();) {
    const char32_t c = next_code_point(word, at);
    const auto code = static_cast<utf8proc_int32_t>(c);
    const auto cased = in_word ? utf8proc_tolower(code) : utf8proc_totitle(code);
    // The one everyday letter whose title form is two characters.
    if (!in_word && c == U'\u00DF') {
      out += "Ss";
    } else {
      append_utf8(out, static_cast<char32_t>(cased));
    }
    in_word = is_cased(c);
  }
  return out;
}

} // namespace modeld::quantize
