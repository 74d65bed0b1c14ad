// SPDX-License-Identifier: Apache-2.0
#include "daemon/safe_json.hpp"

#include "daemon/terminal_text.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

std::size_t sequence_length(unsigned char lead) {
  return lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
}

/// The code point of well-formed UTF-8.
std::uint32_t code_point(std::string_view sequence) {
  auto code = static_cast<std::uint32_t>(static_cast<unsigned char>(sequence[0]));
  if (sequence.size() > 1) code &= 0x7FU >> sequence.size();
  for (const char c : sequence.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

} // namespace

std::string safe_json(const boost::json::object& object) {
  const std::string text = boost::json::serialize(object);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length =
        std::min(sequence_length(static_cast<unsigned char>(text[i])), text.size() - i);
    const std::string_view sequence = std::string_view(text).substr(i, length);
    i += length;
    // Only inside of strings can there be anything but ASCII, so an escape is always right there.
    const bool ascii = length == 1 && sequence[0] != '\x7F';
    if (ascii || terminal_text(sequence) == sequence) {
      out += sequence;
      continue;
    }
    const std::uint32_t code = code_point(sequence);
    if (code < 0x10000)
      out += fmt::format("\\u{:04x}", code);
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                         0xDC00 + ((code - 0x10000) & 0x3FF));
  }
  return out;
}

} // namespace modeld::daemon
