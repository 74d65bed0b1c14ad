// SPDX-License-Identifier: Apache-2.0
#include "daemon/terminal_text.hpp"

#include "validate/escape.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace modeld::daemon {
namespace {

std::string escaped(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto at = validate::first_character(text);
    if (at.bytes == 0) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (!validate::is_hidden(at.code) || (keep_lines && (at.code == '\n' || at.code == '\t'))) {
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
