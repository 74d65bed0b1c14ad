// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <string>
#include <string_view>

namespace modeld::fetch {

/// A Hub access token, or none. Cannot be printed, compared or formatted by accident: the only way
/// to its text is reveal(), and only the code that writes the Authorization header calls it.
class Token {
public:
  /// Anonymous.
  Token() = default;
  /// Strips white space around it; empty text gives an anonymous token. invalid_argument for
  /// characters that cannot stand in a header, without repeating the text.
  static Result<Token> parse(std::string_view text);

  bool empty() const { return text_.empty(); }
  const std::string& reveal() const { return text_; }

private:
  explicit Token(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

} // namespace modeld::fetch
