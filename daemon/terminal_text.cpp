// SPDX-License-Identifier: Apache-2.0
#include "daemon/terminal_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace modeld::daemon {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Characters that act on the terminal or on the eye instead of being seen (Unicode 15, general
// categories Cc, Cf, Zl, Zp as far as they hide or reorder text).
constexpr std::array k_hidden{
    Range{0x0000, 0x001F}, Range{0x007F, 0x009F}, Range{0x00AD, 0x00AD},   Range{0x061C, 0x061C},
    Range{0x180E, 0x180E}, Range{0x200B, 0x200F}, Range{0x2028, 0x202E},   Range{0x2060, 0x206F},
    Range{0xFEFF, 0xFEFF}, Range{0xFFF9, 0xFFFB}, Range{0xE0000, 0xE007F},
};

struct Decoded {
  char32_t code = 0;
  std::size_t bytes = 0; ///< 0: not UTF-8
};

// The longest form is four bytes; overlong forms, surrogates and values above 10FFFF are refused.
Decoded decode(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
  if (length == 0 || lead > 0xF7 || text.size() < length) return {};
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> k_least{0, 0, 0x80, 0x800, 0x10000};
  if (code < k_least[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

bool is_hidden(char32_t code) {
  for (const Range& range : k_hidden) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

std::string escaped(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded at = decode(text);
    if (at.bytes == 0) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (!is_hidden(at.code) || (keep_lines && (at.code == '\n' || at.code == '\t'))) {
      out += text.substr(0, at.bytes);
    } else if (at.code < 0x80) {
      out += fmt::format("\\x{:02X}", static_cast<std::uint32_t>(at.code));
    } else {
      out += fmt::format("\\u{{{:04X}}}", static_cast<std::uint32_t>(at.code));
    }
    text.remove_prefix(at.bytes);
  }
  return out;
}

} // namespace

std::string terminal_text(std::string_view text) {
  return escaped(text, false);
}

std::string terminal_lines(std::string_view text) {
  return escaped(text, true);
}

} // namespace modeld::daemon
