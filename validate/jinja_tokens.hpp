// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::validate {

/// One token of the code in a Jinja template; plain text and comments give none.
struct JinjaToken {
  enum class Kind : std::uint8_t {
    none,
    tag, ///< the first word of {% ... %}
    name,
    string, ///< escapes resolved
    number,
    symbol,
  };
  Kind kind = Kind::none;
  std::string text;
};

/// All tokens in order. Never fails: what Jinja would refuse gives some tokens or none.
std::vector<JinjaToken> jinja_tokens(std::string_view text);

} // namespace modeld::validate
