// SPDX-License-Identifier: Apache-2.0
#include "fetch/token.hpp"

#include <algorithm>

namespace modeld::fetch {
namespace {

constexpr std::string_view k_white = " \t\r\n";
constexpr std::size_t k_max_token = 4096;

} // namespace

Result<Token> Token::parse(std::string_view text) {
  const auto first = text.find_first_not_of(k_white);
  if (first == std::string_view::npos) return Token{};
  text = text.substr(first, text.find_last_not_of(k_white) - first + 1);
  const bool visible =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!visible || text.size() > k_max_token) {
    return fail(Errc::invalid_argument,
                "reading the access token: it is longer than 4096 bytes or has characters other "
                "than visible ASCII",
                "a Hub token is one word that starts with hf_");
  }
  return Token(std::string(text));
}

} // namespace modeld::fetch
