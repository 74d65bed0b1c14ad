// SPDX-License-Identifier: Apache-2.0
#include "validate/escape.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <string>

using namespace modeld::validate;
using namespace std::string_literals;

TEST_CASE("escape_text leaves nothing that acts on a terminal", "[validate][escape]") {
  CHECK(escape_text("plain \u00e9\u4e2d") == "plain \u00e9\u4e2d");
  CHECK(escape_text("\x1b[31m") == "\\u{001B}[31m");
  CHECK(escape_text("a\nb\tc\r") == "a\\nb\\tc\\u{000D}");
  CHECK(escape_text("\u202e\u2066\u009b\x7f") == "\\u{202E}\\u{2066}\\u{009B}\\u{007F}");
  CHECK(escape_text("a\xff\xc3(\xed\xa0\x80") == "a\\xFF\\xC3(\\xED\\xA0\\x80");
  CHECK(escape_text("\0"s) == "\\u{0000}");
  CHECK(escape_text(std::string(300, 'x')) == std::string(200, 'x') + "...");
  CHECK(escape_text("\u4e2d\u4e2d\u4e2d", 2) == "\u4e2d\u4e2d...");
}

TEST_CASE("utf8_valid_prefix stops at every ill-formed sequence", "[validate][escape][ST-04]") {
  CHECK(utf8_valid_prefix("") == 0);
  CHECK(utf8_valid_prefix("\u00e9\u4e2d\U0001F600 abcdefghij") == 20);
  for (const char* bad :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\x80", "\xC3", "\xE4\xB8", "\xFF"}) {
    for (const std::size_t before : {0U, 1U, 7U, 8U, 9U, 16U}) {
      INFO(before);
      CHECK(utf8_valid_prefix(std::string(before, 'a') + bad + "zzzzzzzzzzzzzzzz") == before);
      CHECK(utf8_valid_prefix(std::string(before, 'a') + bad) == before);
    }
  }
}

TEST_CASE("is_clean_utf8 never says yes to what is ill-formed or holds a NUL",
          "[validate][escape]") {
  std::mt19937 random(7);
  // Bytes that make and break sequences, more often than chance would.
  const std::string alphabet = "a\0\x80\xBF\xC0\xC2\xDF\xE0\xE1\xED\xEF\xF0\xF4z"s;
  std::size_t clean = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text(random() % 20, ' ');
    for (char& c : text)
      c = alphabet[random() % alphabet.size()];
    const std::string padded = text + "\x80\x80\x80\x80\x80\x80\x80\x80";
    const bool answer = is_clean_utf8(padded.data(), text.size(), padded.size());
    CHECK(answer == is_clean_utf8(text.data(), text.size(), text.size()));
    if (!answer) continue;
    ++clean;
    REQUIRE(utf8_valid_prefix(text) == text.size());
    REQUIRE(text.find('\0') == std::string::npos);
  }
  CHECK(clean > 1000);
  for (const std::string& text : {"\u0120the"s, "\u00e9"s, "abcdefg\u00e9"s, "abcdef\u4e2d\u4e2d"s})
    CHECK(is_clean_utf8(text.data(), text.size(), text.size()));
}
