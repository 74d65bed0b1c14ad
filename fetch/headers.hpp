// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::fetch {

/// Response headers by name in any case.
class Headers {
public:
  void add(std::string_view name, std::string_view value);
  void clear() { fields_.clear(); }
  /// The first one; empty where there is none.
  std::string_view get(std::string_view name) const;
  /// All of them with commas between, as a list may be written (RFC 9110, 5.3).
  std::string joined(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

private:
  const std::string* find(std::string_view name) const;
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// A whole number, or nothing.
std::optional<std::uint64_t> parse_number(std::string_view text);

/// ETag without "W/", quotes and a "-gzip" ending: the bare id (failure case C16).
std::string_view bare_etag(std::string_view header);
/// Whether an ETag may stand in If-Range: quoted and not weak.
bool is_strong_etag(std::string_view header);

/// "bytes A-B/TOTAL" or "bytes */TOTAL"; `total` is absent for '*'.
struct ContentRange {
  std::optional<std::uint64_t> first, last, total;
};
std::optional<ContentRange> parse_content_range(std::string_view header);

/// Target of the first link with the relation "next" in a Link header (RFC 8288). malformed where
/// the header speaks of one and cannot be read: the rest of a listing must not be lost in silence.
Result<std::optional<std::string>> next_link(std::string_view header);

/// How long the server asks to wait: Retry-After as seconds or as an HTTP date (against `now`),
/// "RateLimit: ...;r=0;t=SECONDS", or RateLimit-Remaining and -Reset (also with X-). A limit with
/// requests left asks for nothing.
std::optional<std::chrono::seconds> wait_asked_for(const Headers& headers, std::time_t now);

} // namespace modeld::fetch
