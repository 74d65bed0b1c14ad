// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <string>
#include <string_view>

namespace modeld::fetch {

/// An absolute http or https address without user information and fragment.
class Url {
public:
  static Result<Url> parse(std::string_view text);
  /// A Location or link seen from here (RFC 3986, section 5): absolute, "//host", "/path",
  /// "relative" or "?query".
  Result<Url> join(std::string_view reference) const;

  const std::string& text() const { return text_; }
  /// "https://host:443": scheme, host in lower case, and port, always spelled out.
  const std::string& origin() const { return origin_; }
  const std::string& host() const { return host_; }
  bool secure() const { return secure_; }
  /// For messages: signatures live in queries, so a query becomes "?...".
  std::string redacted() const;

private:
  std::string text_, origin_, host_;
  bool secure_ = false;
};

/// One part of a path: all but unreserved characters as %XX, '/' too.
std::string encode_segment(std::string_view text);
/// A path of a repository: each part encoded once, '/' kept.
std::string encode_path(std::string_view text);

} // namespace modeld::fetch
