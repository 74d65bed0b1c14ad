// SPDX-License-Identifier: Apache-2.0
#include "daemon/terminal_text.hpp"

#include <catch2/catch.hpp>

#include <string>

using modeld::daemon::terminal_lines;
using modeld::daemon::terminal_text;

TEST_CASE("terminal_text keeps what can be seen", "[daemon][terminal_text]") {
  CHECK(terminal_text("Qwen3 \xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80 a\\b") ==
        "Qwen3 \xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80 a\\b");
}

TEST_CASE("terminal_text shows every control character as an escape", "[daemon][terminal_text]") {
  for (int code = 0; code < 0x20; ++code) {
    const std::string shown = terminal_text(std::string(1, static_cast<char>(code)));
    CHECK(shown.size() == 4);
    CHECK(shown.starts_with("\\x"));
  }
  CHECK(terminal_text("\x1B[31m\x7F") == "\\x1B[31m\\x7F");
  CHECK(terminal_text("\xC2\x9B") == "\\u{009B}"); // CSI as one character
}

TEST_CASE("terminal_text shows characters that reorder or hide text", "[daemon][terminal_text]") {
  CHECK(terminal_text("a\xE2\x80\xAE"
                      "b") == "a\\u{202E}b");
  CHECK(terminal_text("\xE2\x81\xA6") == "\\u{2066}");
  CHECK(terminal_text("\xE2\x80\x8B") == "\\u{200B}");
  CHECK(terminal_text("\xEF\xBB\xBF") == "\\u{FEFF}");
  CHECK(terminal_text("\xF3\xA0\x81\x81") == "\\u{E0041}");
}

TEST_CASE("terminal_text shows bytes that are not UTF-8", "[daemon][terminal_text]") {
  CHECK(terminal_text("\xFF\x80") == "\\xFF\\x80");
  CHECK(terminal_text("\xC0\xAF") == "\\xC0\\xAF");                   // overlong
  CHECK(terminal_text("\xED\xA0\x80") == "\\xED\\xA0\\x80");          // surrogate
  CHECK(terminal_text("\xF4\x90\x80\x80") == "\\xF4\\x90\\x80\\x80"); // above 10FFFF
  CHECK(terminal_text("\xE2\x80") == "\\xE2\\x80");                   // cut short
}

TEST_CASE("terminal_lines keeps line feeds and tabs only", "[daemon][terminal_text]") {
  CHECK(terminal_lines("a\n\tb\r") == "a\n\tb\\x0D");
}
