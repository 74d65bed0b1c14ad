// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/scripts.hpp"

#include "quantize/encoder/regex.hpp"
#include "quantize/encoder/utf8_text.hpp"

#include <array>
#include <string>

namespace modeld::quantize {
namespace {

constexpr int k_any = 0;

// The scripts of living texts first; the regular expression library has their characters.
constexpr std::array<std::string_view, 60> k_scripts{
    "Han",        "Common",       "Latin",      "Greek",       "Cyrillic", "Arabic",
    "Hebrew",     "Hangul",       "Devanagari", "Bengali",     "Thai",     "Inherited",
    "Armenian",   "Syriac",       "Thaana",     "Gurmukhi",    "Gujarati", "Oriya",
    "Tamil",      "Telugu",       "Kannada",    "Malayalam",   "Sinhala",  "Lao",
    "Tibetan",    "Myanmar",      "Georgian",   "Ethiopic",    "Cherokee", "Canadian_Aboriginal",
    "Ogham",      "Runic",        "Khmer",      "Mongolian",   "Bopomofo", "Yi",
    "Old_Italic", "Gothic",       "Deseret",    "Tagalog",     "Hanunoo",  "Buhid",
    "Tagbanwa",   "Limbu",        "Tai_Le",     "New_Tai_Lue", "Buginese", "Glagolitic",
    "Tifinagh",   "Syloti_Nagri", "Coptic",     "Braille",     "Balinese", "Nko",
    "Phags_Pa",   "Cuneiform",    "Javanese",   "Sundanese",   "Lepcha",   "Vai"};

Result<EncoderRegex> make_pattern() {
  std::string pattern;
  for (const auto script : k_scripts) {
    pattern += pattern.empty() ? "(" : "|(";
    pattern += R"(\p{)";
    pattern += script;
    pattern += "})";
  }
  return EncoderRegex::compile(pattern);
}

/// 0 for any script, else its place in the list, counted from 1.
Result<int> script_of(std::string_view character, char32_t c, const EncoderRegex& pattern) {
  if (c == ' ') return k_any;
  constexpr int k_han = 1;
  // Hiragana, Katakana and the mark for long vowels.
  if ((c >= 0x3041 && c <= 0x309F && c != 0x3099 && c != 0x309A) || (c >= 0x30A1 && c <= 0x30FF) ||
      (c >= 0x31F0 && c <= 0x31FF) || (c >= 0xFF66 && c <= 0xFF9D && c != 0xFF70)) {
    return k_han;
  }
  MODELD_ASSIGN(const int group, pattern.first_group_at_start(character));
  return group == 0 ? static_cast<int>(k_scripts.size()) + 1 : group;
}

} // namespace

Result<std::vector<TextSpan>> script_runs(std::string_view text) {
  static const auto k_pattern = make_pattern();
  if (!k_pattern) return fail(k_pattern.error());
  std::vector<TextSpan> out;
  int last = -1;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    const char32_t c = next_code_point(text, at);
    MODELD_ASSIGN(const int script, script_of(text.substr(before, at - before), c, *k_pattern));
    if (script != k_any && script != last) {
      if (last > k_any) out.emplace_back(begin, before);
      begin = before;
    }
    if (script != k_any) last = script;
  }
  if (last > k_any) out.emplace_back(begin, text.size());
  return out;
}

} // namespace modeld::quantize
