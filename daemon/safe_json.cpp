// SPDX-License-Identifier: Apache-2.0
#include "daemon/safe_json.hpp"

#include "validate/escape.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {

std::string safe_json(const boost::json::object& object) {
  const std::string text = boost::json::serialize(object);
  std::string out;
  out.reserve(text.size());
  // Only inside of strings can there be anything but printable ASCII, so an escape is always right.
  for (std::string_view rest = text; !rest.empty();) {
    if (rest.front() >= ' ' && rest.front() < '\x7F') {
      out += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    const auto at = validate::first_character(rest);
    if (at.bytes == 0) {
      out += fmt::format("\\\\x{:02X}", static_cast<unsigned char>(rest.front()));
      rest.remove_prefix(1);
      continue;
    }
    const auto code = static_cast<std::uint32_t>(at.code);
    if (!validate::is_hidden(at.code))
      out += rest.substr(0, at.bytes);
    else if (code < 0x10000)
      out += fmt::format("\\u{:04x}", code);
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                         0xDC00 + ((code - 0x10000) & 0x3FF));
    rest.remove_prefix(at.bytes);
  }
  return out;
}

} // namespace modeld::daemon
