// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/charsmap.hpp"

#include "quantize/encoder/unicode_versions.hpp"
#include "quantize/encoder/utf8_text.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

// u32 size of the trie in bytes, little-endian; units of u32; then texts that end in NUL.
// A unit: bit 8 has a leaf, bits 0 to 7 and 31 the label, the rest the offset; a leaf's value is
// bits 0 to 30.

namespace modeld::quantize {
namespace {

constexpr std::size_t k_longest_whole_grapheme = 5;

std::uint32_t load(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

std::size_t offset_of(std::uint32_t unit) {
  return static_cast<std::size_t>(unit >> 10U) << ((unit & (1U << 9U)) >> 6U);
}

std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  auto before = static_cast<utf8proc_int32_t>(next_code_point(text, at));
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    std::size_t next = at;
    const auto after = static_cast<utf8proc_int32_t>(next_code_point(text, next));
    if (utf8proc_grapheme_break_stateful(before, after, &state)) break;
    before = after;
    at = next;
  }
  return at;
}

} // namespace

Result<CharsMap> CharsMap::parse(std::string_view bytes) {
  CharsMap out;
  const std::size_t size = bytes.size() < 4 ? 0 : load(bytes, 0);
  if (bytes.size() < 4 || size % 4 != 0 || size > bytes.size() - 4) {
    return fail(Errc::malformed,
                fmt::format("reading a precompiled character map: trie of {} bytes in {}", size,
                            bytes.size()));
  }
  for (std::size_t at = 4; at < 4 + size; at += 4) {
    out.units_.push_back(load(bytes, at));
  }
  out.texts_ = bytes.substr(4 + size);
  return out;
}

/// What the shortest prefix of the key that is in the trie becomes.
std::optional<std::string_view> CharsMap::find(std::string_view key) const {
  if (units_.empty()) return std::nullopt;
  std::size_t at = offset_of(units_[0]);
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    at ^= byte;
    if (at >= units_.size()) return std::nullopt;
    const std::uint32_t unit = units_[at];
    if ((unit & ((1U << 31U) | 0xFFU)) != byte) return std::nullopt;
    at ^= offset_of(unit);
    if (at >= units_.size()) return std::nullopt;
    if ((unit & (1U << 8U)) == 0) continue;
    const std::size_t begin = units_[at] & 0x7FFFFFFFU;
    if (begin >= texts_.size()) return std::nullopt;
    const auto end = std::min(texts_.find('\0', begin), texts_.size());
    return std::string_view(texts_).substr(begin, end - begin);
  }
  return std::nullopt;
}

std::string CharsMap::apply(std::string_view text) const {
  std::string out;
  // Of as many bytes each; where graphemes end is the same.
  const std::string known = with_known_characters(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = grapheme_end(known, begin);
    const auto grapheme = text.substr(begin, end - begin);
    begin = end;
    if (grapheme.size() <= k_longest_whole_grapheme) {
      if (const auto whole = find(grapheme)) {
        out += *whole;
        continue;
      }
    }
    for (std::size_t at = 0; at < grapheme.size();) {
      const std::size_t before = at;
      next_code_point(grapheme, at);
      const auto character = grapheme.substr(before, at - before);
      out += find(character).value_or(character);
    }
  }
  return out;
}

} // namespace modeld::quantize
