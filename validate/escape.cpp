// SPDX-License-Identifier: Apache-2.0
#include "validate/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_ones = 0x0101010101010101ULL;
constexpr std::uint64_t k_high_bits = 0x8080808080808080ULL;

/// Bytes of the well-formed sequence that starts at `at`, with its code point; 0 where there is
/// none. Table 3-7 of the Unicode standard.
std::size_t sequence(const unsigned char* at, std::size_t left, char32_t& code) {
  const unsigned lead = at[0];
  if (lead < 0x80) {
    code = lead;
    return 1;
  }
  const auto tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < left && at[i] >= low && at[i] <= high;
  };
  const auto bits = [&](std::size_t i) { return static_cast<char32_t>(at[i] & 0x3F); };
  if (lead >= 0xC2 && lead <= 0xDF && tail(1)) {
    code = static_cast<char32_t>(lead & 0x1F) << 6 | bits(1);
    return 2;
  }
  if (lead >= 0xE0 && lead <= 0xEF &&
      tail(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && tail(2)) {
    code = static_cast<char32_t>(lead & 0x0F) << 12 | bits(1) << 6 | bits(2);
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4 &&
      tail(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && tail(2) && tail(3)) {
    code = static_cast<char32_t>(lead & 0x07) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
    return 4;
  }
  return 0;
}

bool is_bidi(char32_t code) {
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

struct Range {
  char32_t first;
  char32_t last;
};

// Beside what the specification names: line separators, and the marks and tags that are invisible
// but change what a line seems to say.
constexpr std::array k_hidden{
    Range{0x0000, 0x001F}, Range{0x007F, 0x009F}, Range{0x00AD, 0x00AD},   Range{0x061C, 0x061C},
    Range{0x180E, 0x180E}, Range{0x200B, 0x200F}, Range{0x2028, 0x202E},   Range{0x2060, 0x206F},
    Range{0xFEFF, 0xFEFF}, Range{0xFFF9, 0xFFFB}, Range{0xE0000, 0xE007F},
};

} // namespace

Utf8Character first_character(std::string_view text) {
  Utf8Character first;
  if (text.empty()) return first;
  first.bytes =
      sequence(reinterpret_cast<const unsigned char*>(text.data()), text.size(), first.code);
  return first;
}

bool is_hidden(char32_t code) {
  return std::any_of(k_hidden.begin(), k_hidden.end(), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

std::string escape_text(std::string_view text, std::size_t limit) {
  std::string out;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++characters) {
    if (characters == limit) {
      out += "...";
      break;
    }
    char32_t code = 0;
    const std::size_t length = sequence(data + i, text.size() - i, code);
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02X}", data[i]);
      ++i;
      continue;
    }
    if (code == '\n') {
      out += "\\n";
    } else if (code == '\t') {
      out += "\\t";
    } else if (is_hidden(code)) {
      fmt::format_to(std::back_inserter(out), "\\u{{{:04X}}}", static_cast<std::uint32_t>(code));
    } else {
      out.append(text.substr(i, length));
    }
    i += length;
  }
  return out;
}

std::string quoted(std::string_view text) {
  return "'" + escape_text(text) + "'";
}

std::size_t utf8_valid_prefix(std::string_view text) {
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = 0;
  while (i < text.size()) {
    while (text.size() - i >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, data + i, 8);
      if ((word & k_high_bits) != 0) break;
      i += 8;
    }
    // One whole run of other characters, then the fast loop again.
    while (i < text.size()) {
      char32_t code = 0;
      const std::size_t length = sequence(data + i, text.size() - i, code);
      if (length == 0) return i;
      i += length;
      if (length == 1 && text.size() - i >= 8) break;
    }
  }
  return i;
}

bool is_clean_utf8(const char* at, std::size_t length, std::size_t readable) {
  if constexpr (std::endian::native != std::endian::little) return false;
  // Eight bytes at a time; in these words bit 7 of a byte answers for the byte.
  const auto holds = [](std::uint64_t word, std::uint64_t byte) {
    const std::uint64_t difference = word ^ (k_ones * byte);
    return ((difference - k_ones) & ~difference & k_high_bits) != 0;
  };
  std::uint64_t carry = 0; // continuation bytes that the next word must begin with
  for (std::size_t i = 0; i < length; i += 8) {
    const std::size_t rest = length - i;
    std::uint64_t word = k_ones;
    if (rest >= 8) {
      std::memcpy(&word, at + i, 8);
    } else if (readable - i >= 8) {
      std::memcpy(&word, at + i, 8);
      const std::uint64_t beyond = ~std::uint64_t{0} << (8 * rest);
      word = (word & ~beyond) | (k_ones & beyond);
    } else {
      std::memcpy(&word, at + i, rest);
    }
    const std::uint64_t high = word & k_high_bits;
    if (((word - k_ones) & ~word & k_high_bits) != 0) return false; // NUL
    if (high == 0 && carry == 0) continue;
    const std::uint64_t lead = high & (word << 1);
    const std::uint64_t lead2 = lead & ~(word << 2);
    const std::uint64_t lead3 = lead & (word << 2) & ~(word << 3);
    if ((lead2 | lead3) != lead) return false; // four bytes
    const std::uint64_t not_overlong = (word << 3) | (word << 4) | (word << 5) | (word << 6);
    if ((lead2 & ~not_overlong) != 0) return false; // C0, C1
    // E0 and ED restrict what follows: overlong forms and surrogates.
    if (lead3 != 0 && (holds(word, 0xE0) || holds(word, 0xED))) return false;
    const std::uint64_t expected = carry | (lead << 8) | (lead3 << 16);
    if ((high & ~lead) != expected) return false;
    carry = (lead >> 56) | (lead3 >> 48);
  }
  return carry == 0;
}

TextTraits text_traits(std::string_view text) {
  TextTraits traits;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  for (std::size_t i = 0; i < text.size();) {
    char32_t code = 0;
    const std::size_t length = sequence(data + i, text.size() - i, code);
    if (length == 0) {
      ++i;
      continue;
    }
    traits.nul |= code == 0;
    traits.control |= is_control(code);
    traits.bidi |= is_bidi(code);
    i += length;
  }
  return traits;
}

} // namespace modeld::validate
