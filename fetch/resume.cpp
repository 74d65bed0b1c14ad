// SPDX-License-Identifier: Apache-2.0
#include "fetch/resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::fetch {
namespace {

// A server may send less than was asked for; less than this is not worth going on with.
constexpr std::uint64_t k_least_part = 64 << 10;

Verdict refuse(std::string why) {
  return {Verdict::Kind::refuse, std::move(why), 0};
}

bool is_encoded(const Headers& headers) {
  const std::string_view encoding = headers.get("Content-Encoding");
  return !encoding.empty() && encoding != "identity";
}

/// Empty where Content-Length is absent or equals `expected`.
std::string length_fault(const Headers& headers, std::uint64_t expected) {
  if (!headers.has("Content-Length") || is_encoded(headers)) return {};
  if (headers.has("Transfer-Encoding")) return {}; // which wins (RFC 9112, 6.3)
  const auto length = parse_number(headers.get("Content-Length"));
  if (length == expected) return {};
  return fmt::format("Content-Length is '{}', the listing leaves {} bytes",
                     headers.get("Content-Length"), expected);
}

Verdict judge_whole(const Wanted& wanted, const Headers& headers) {
  if (auto fault = length_fault(headers, wanted.size); !fault.empty()) return refuse(fault);
  if (wanted.ranged) return {Verdict::Kind::restart, "the server ignored the range", wanted.size};
  return {Verdict::Kind::append, {}, wanted.size};
}

Verdict judge_part(const Wanted& wanted, const Headers& headers) {
  if (is_encoded(headers)) return refuse("a compressed part of a file");
  if (!headers.has("Content-Range")) return refuse("206 without Content-Range");
  const auto range = parse_content_range(headers.get("Content-Range"));
  const std::string_view text = headers.get("Content-Range");
  if (!range || !range->first) return refuse(fmt::format("Content-Range is '{}'", text));
  if (range->total && *range->total != wanted.size) {
    return refuse(fmt::format("Content-Range '{}' gives another size than the listing's {}", text,
                              wanted.size));
  }
  const std::uint64_t end = std::min(*range->last, wanted.size) + 1;
  const bool enough = end == wanted.end || (end < wanted.end && end - wanted.first >= k_least_part);
  if (*range->first != wanted.first || !enough) {
    return refuse(fmt::format("Content-Range '{}' is not the range {}-{} that was asked for", text,
                              wanted.first, wanted.end - 1));
  }
  if (auto fault = length_fault(headers, end - wanted.first); !fault.empty()) {
    return refuse(fault);
  }
  const std::string_view etag = headers.get("ETag");
  if (!wanted.etag.empty() && is_strong_etag(etag) && etag != wanted.etag) {
    return refuse("the server's file changed since the first part of it");
  }
  return {Verdict::Kind::append, {}, end};
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool starts_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(),
                                                  [](char a, char b) { return a == lower(b); });
}

/// "<p", "</p", "<!--", "<?xml".
bool begins_with_markup(std::string_view text) {
  if (text.size() < 2 || text[0] != '<') return false;
  const char next = lower(text[1]);
  return (next >= 'a' && next <= 'z') || next == '!' || next == '?' || next == '/';
}

} // namespace

Verdict judge(const Wanted& wanted, unsigned status, const Headers& headers) {
  if (status == 200) return judge_whole(wanted, headers);
  if (status == 206) return judge_part(wanted, headers);
  if (status == 416 && wanted.ranged) {
    const auto range = parse_content_range(headers.get("Content-Range"));
    if (wanted.first == wanted.size && range && range->total == wanted.size) {
      return {Verdict::Kind::complete, {}, wanted.size};
    }
    return refuse(fmt::format("416 for the range {}-{} of {} bytes", wanted.first, wanted.end - 1,
                              wanted.size));
  }
  return refuse(fmt::format("HTTP status {}", status));
}

std::string range_value(const Wanted& wanted) {
  if (wanted.end == wanted.size) return fmt::format("bytes={}-", wanted.first);
  return fmt::format("bytes={}-{}", wanted.first, wanted.end - 1);
}

bool looks_like_page(std::string_view path, std::string_view content_type, std::string_view body) {
  constexpr std::array<std::string_view, 6> k_may_be{".html", ".htm", ".md",
                                                     ".svg",  ".xml", ".txt"};
  if (std::any_of(k_may_be.begin(), k_may_be.end(),
                  [path](std::string_view end) { return path.ends_with(end); })) {
    return false;
  }
  const auto first = body.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return false;
  body.remove_prefix(first);
  // The type alone says little: servers give it to files that they do not know, too.
  if (starts_with_word(content_type, "text/html") && begins_with_markup(body)) return true;
  return starts_with_word(body, "<!doctype html") || starts_with_word(body, "<html");
}

bool looks_like_pointer(std::string_view body) {
  return body.starts_with("version https://git-lfs.github.com/spec/v1\n");
}

} // namespace modeld::fetch
