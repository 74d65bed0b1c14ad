// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::test {

/// The two origins of the Hub: the site itself, and the storage that large files are redirected to.
enum class Origin { hub, data };

/// A request as it came over the wire.
struct Request {
  Origin origin = Origin::hub;
  std::string method;
  std::string target; ///< undecoded
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::uint64_t connection = 0; ///< counts from 1 over both origins
  bool keep_alive = true;

  /// First header of that name in any case; empty where there is none.
  std::string_view header(std::string_view name) const;
  /// Undecoded, without the query.
  std::string_view path() const;
  /// Decoded value of a query parameter.
  std::optional<std::string> query(std::string_view name) const;
  /// What follows "Bearer " in Authorization.
  std::string_view token() const;
};

/// An answer before it is sent. The body is owned text, or a part of longer-lived bytes.
struct Answer {
  unsigned status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string text;
  std::string_view bytes;            ///< used where `owner` is set
  std::shared_ptr<const void> owner; ///< keeps `bytes` alive
  bool announce_length = true;       ///< false: the end of the connection ends the body

  std::string_view body() const { return owner ? bytes : std::string_view(text); }
  void set(std::string name, std::string value);
  /// Status line, Content-Length and all headers, with the empty line.
  std::string head() const;
};

std::string_view reason_phrase(unsigned status);

/// %XX decoded exactly once; nothing where an escape is broken. '+' stays.
std::optional<std::string> percent_decode(std::string_view text);
/// All but unreserved characters (and those in `keep`) as %XX.
std::string percent_encode(std::string_view text, std::string_view keep = "");
/// application/x-www-form-urlencoded pairs in order, decoded ('+' is a space).
std::vector<std::pair<std::string, std::string>> parse_form(std::string_view text);

/// A single byte range of a body of `size` bytes: [first, last], or nothing where the header is
/// absent or not understood; `satisfiable` is false for a start at or after the end.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool satisfiable = true;
};
std::optional<ByteRange> parse_range(std::string_view header, std::uint64_t size);

} // namespace modeld::test
