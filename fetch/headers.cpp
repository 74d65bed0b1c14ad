// SPDX-License-Identifier: Apache-2.0
#include "fetch/headers.hpp"

#include "fetch/curl_handle.hpp"

#include <fmt/format.h>

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

constexpr std::size_t k_max_quote = 200;
constexpr std::uint64_t k_longest_wait = 24 * 3600;     // seconds; more is nonsense, not advice
constexpr std::uint64_t k_first_moment = 1'000'000'000; // from here on a moment, not a time to wait

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

/// Reads a Link header (RFC 8288): <target>; name=value; name="value", <target>; ...
class LinkReader {
public:
  struct Link {
    std::string_view target;
    bool is_next = false;
  };

  explicit LinkReader(std::string_view header) : rest_(header) {}

  /// What could not be read.
  std::string_view rest() const { return rest_; }

  std::optional<Link> next() {
    skip(" \t,");
    if (rest_.empty() || rest_.front() != '<') return std::nullopt;
    const auto close = rest_.find('>');
    if (close == std::string_view::npos) return std::nullopt;
    Link link{trim(rest_.substr(1, close - 1)), false};
    rest_.remove_prefix(close + 1);
    for (skip(" \t"); !rest_.empty() && rest_.front() == ';'; skip(" \t")) {
      rest_.remove_prefix(1);
      skip(" \t");
      const std::string_view name = word();
      const std::string_view value = value_of_parameter();
      if (same_word(name, "rel")) link.is_next = link.is_next || names_next(value);
    }
    return link;
  }

private:
  void skip(std::string_view what) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(what), rest_.size()));
  }
  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view word() { return take(rest_.find_first_of(" \t=;,")); }
  std::string_view value_of_parameter() {
    skip(" \t");
    if (rest_.empty() || rest_.front() != '=') return {};
    rest_.remove_prefix(1);
    skip(" \t");
    if (rest_.empty() || rest_.front() != '"') return word();
    rest_.remove_prefix(1);
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] != '"') {
      end += rest_[end] == '\\' ? 2U : 1U;
    }
    const std::string_view value = take(end);
    take(1);
    return value;
  }
  /// A relation is one of several words.
  static bool names_next(std::string_view value) {
    while (!value.empty()) {
      const auto space = std::min(value.find_first_of(" \t"), value.size());
      std::string_view one = value.substr(0, space);
      if (one.size() > 2 && one.front() == '\'' && one.back() == '\'') {
        one = one.substr(1, one.size() - 2);
      }
      if (same_word(one, "next")) return true;
      value.remove_prefix(std::min(space + 1, value.size()));
    }
    return false;
  }

  std::string_view rest_;
};

/// Seconds until a limit of which nothing is left begins anew: "RateLimit: ...;r=0;t=55", or the
/// pair of headers that came before it.
std::optional<std::uint64_t> reset_of_used_up_limit(const Headers& headers, std::time_t now) {
  const std::string_view limit = headers.get("RateLimit");
  if (parameter(limit, "r") == std::uint64_t{0}) return parameter(limit, "t");
  for (const std::string prefix : {"RateLimit-", "X-RateLimit-"}) {
    if (parse_number(headers.get(prefix + "Remaining")) != std::uint64_t{0}) continue;
    const auto reset = parse_number(headers.get(prefix + "Reset"));
    if (!reset || *reset < k_first_moment) return reset;
    const auto moment = static_cast<std::uint64_t>(now);
    return *reset > moment ? *reset - moment : 0;
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

std::string Headers::joined(std::string_view name) const {
  std::string all;
  for (const auto& [field, value] : fields_) {
    if (!same_word(field, name)) continue;
    all += (all.empty() ? "" : ", ") + value;
  }
  return all;
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
  if (header.size() < k_unit.size() || !same_word(header.substr(0, k_unit.size()), k_unit)) {
    return std::nullopt;
  }
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

Result<std::optional<std::string>> next_link(std::string_view header) {
  LinkReader reader(header);
  while (const auto link = reader.next()) {
    if (link->is_next) return std::string(link->target);
  }
  std::string rest(reader.rest());
  std::transform(rest.begin(), rest.end(), rest.begin(), lower);
  if (rest.find("next") == std::string::npos) return std::nullopt;
  return fail(Errc::malformed,
              fmt::format("reading a Link header: '{}' is not <address>; rel=\"next\"",
                          reader.rest().substr(0, k_max_quote)));
}

std::optional<std::chrono::seconds> wait_asked_for(const Headers& headers, std::time_t now) {
  if (const auto reset = reset_of_used_up_limit(headers, now)) return bounded(*reset + 1);
  std::string after(headers.get("Retry-After"));
  if (after.empty()) return std::nullopt;
  if (const auto point = after.find('.');
      point != std::string::npos) { // "1.5": not in the standard
    if (const auto whole = parse_number(after.substr(0, point))) return bounded(*whole + 1);
  }
  if (const auto count = parse_number(after)) return bounded(*count);
  const std::time_t date = curl_getdate(after.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return bounded(date > now ? static_cast<std::uint64_t>(date - now) : 0);
}

} // namespace modeld::fetch
