// SPDX-License-Identifier: Apache-2.0
#include "fetch/headers.hpp"

#include "fetch/curl_handle.hpp"

#include <algorithm>
#include <charconv>

namespace modeld::fetch {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

constexpr std::uint64_t k_longest_wait = 24 * 3600; // seconds; more is nonsense, not advice

std::chrono::seconds bounded(std::uint64_t value) {
  return std::chrono::seconds(static_cast<long>(std::min(value, k_longest_wait)));
}

/// Value of ";name=digits" in a structured header.
std::optional<std::uint64_t> parameter(std::string_view header, std::string_view name) {
  std::size_t at = 0;
  while ((at = header.find(';', at)) != std::string_view::npos) {
    const std::string_view item =
        header.substr(at + 1, header.find_first_of(";,", at + 1) - at - 1);
    const auto equal = item.find('=');
    if (equal != std::string_view::npos && trim(item.substr(0, equal)) == name) {
      return parse_number(trim(item.substr(equal + 1)));
    }
    ++at;
  }
  return std::nullopt;
}

} // namespace

void Headers::add(std::string_view name, std::string_view value) {
  fields_.emplace_back(name, trim(value));
}

const std::string* Headers::find(std::string_view name) const {
  const auto it = std::find_if(fields_.begin(), fields_.end(),
                               [name](const auto& field) { return same_word(field.first, name); });
  return it == fields_.end() ? nullptr : &it->second;
}

std::string_view Headers::get(std::string_view name) const {
  const std::string* found = find(name);
  return found == nullptr ? std::string_view{} : std::string_view(*found);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [used, ec] = std::from_chars(text.data(), end, value);
  if (text.empty() || ec != std::errc{} || used != end) return std::nullopt;
  return value;
}

std::string_view bare_etag(std::string_view header) {
  header = trim(header);
  if (header.starts_with("W/") || header.starts_with("w/")) header.remove_prefix(2);
  if (header.starts_with('"')) header.remove_prefix(1);
  if (header.ends_with('"')) header.remove_suffix(1);
  for (const std::string_view ending : {"-gzip", "--gzip", ";gzip"}) {
    if (header.ends_with(ending)) header.remove_suffix(ending.size());
  }
  return header;
}

bool is_strong_etag(std::string_view header) {
  return header.size() > 2 && header.front() == '"' && header.back() == '"';
}

std::optional<ContentRange> parse_content_range(std::string_view header) {
  constexpr std::string_view k_unit = "bytes ";
  if (!header.starts_with(k_unit)) return std::nullopt;
  header = trim(header.substr(k_unit.size()));
  const auto slash = header.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange range;
  const std::string_view total = header.substr(slash + 1);
  range.total = parse_number(total);
  if (!range.total && total != "*") return std::nullopt;
  const std::string_view span = header.substr(0, slash);
  if (span == "*") return range;
  const auto dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  range.first = parse_number(span.substr(0, dash));
  range.last = parse_number(span.substr(dash + 1));
  if (!range.first || !range.last || *range.last < *range.first) return std::nullopt;
  return range;
}

std::optional<std::string> next_link(std::string_view header) {
  while (!header.empty()) {
    const auto open = header.find('<');
    const auto close = header.find('>', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
    const std::string_view target = header.substr(open + 1, close - open - 1);
    const std::string_view after = header.substr(close + 1);
    const auto end = after.find('<');
    const std::string_view parameters = after.substr(0, end);
    const auto rel = parameters.find("rel=");
    if (rel != std::string_view::npos) {
      std::string_view value = parameters.substr(rel + 4);
      value = value.starts_with('"') ? value.substr(1, value.find('"', 1) - 1)
                                     : trim(value.substr(0, value.find_first_of(";, ")));
      if (same_word(value, "next")) return std::string(target);
    }
    header = end == std::string_view::npos ? std::string_view{} : after.substr(end);
  }
  return std::nullopt;
}

std::optional<std::chrono::seconds> wait_asked_for(const Headers& headers, std::time_t now) {
  const std::string_view limit = headers.get("RateLimit");
  if (const auto left = parameter(limit, "r"); left == std::uint64_t{0}) {
    if (const auto reset = parameter(limit, "t")) return bounded(*reset + 1);
  }
  const std::string after(headers.get("Retry-After"));
  if (after.empty()) return std::nullopt;
  if (const auto count = parse_number(after)) return bounded(*count);
  const std::time_t date = curl_getdate(after.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return bounded(date > now ? static_cast<std::uint64_t>(date - now) : 0);
}

} // namespace modeld::fetch
