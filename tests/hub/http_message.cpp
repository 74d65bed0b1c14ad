// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/http_message.hpp"

#include <boost/algorithm/string/predicate.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace modeld::test {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_' || c == '.' || c == '~';
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

} // namespace

std::string_view Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (boost::algorithm::iequals(key, name)) return value;
  }
  return {};
}

std::string_view Request::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::optional<std::string> Request::query(std::string_view name) const {
  const auto mark = target.find('?');
  if (mark == std::string::npos) return std::nullopt;
  for (auto& [key, value] : parse_form(std::string_view(target).substr(mark + 1))) {
    if (key == name) return std::move(value);
  }
  return std::nullopt;
}

std::string_view Request::token() const {
  constexpr std::string_view k_scheme = "Bearer ";
  const std::string_view value = header("Authorization");
  return value.starts_with(k_scheme) ? value.substr(k_scheme.size()) : std::string_view{};
}

void Answer::set(std::string name, std::string value) {
  for (auto& [key, old] : headers) {
    if (boost::algorithm::iequals(key, name)) {
      old = std::move(value);
      return;
    }
  }
  headers.emplace_back(std::move(name), std::move(value));
}

std::string Answer::head() const {
  std::string text_head = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  bool length = status == 204 || status == 304 || !announce_length;
  for (const auto& [name, value] : headers) {
    if (value.empty()) continue;
    text_head += fmt::format("{}: {}\r\n", name, value);
    length = length || boost::algorithm::iequals(name, "Content-Length") ||
             boost::algorithm::iequals(name, "Transfer-Encoding");
  }
  if (!length) text_head += fmt::format("Content-Length: {}\r\n", body().size());
  if (!announce_length) text_head += "Connection: close\r\n";
  return text_head + "\r\n";
}

std::string_view reason_phrase(unsigned status) {
  switch (status) {
  case 200:
    return "OK";
  case 204:
    return "No Content";
  case 206:
    return "Partial Content";
  case 301:
    return "Moved Permanently";
  case 302:
    return "Found";
  case 304:
    return "Not Modified";
  case 307:
    return "Temporary Redirect";
  case 308:
    return "Permanent Redirect";
  case 400:
    return "Bad Request";
  case 401:
    return "Unauthorized";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 408:
    return "Request Timeout";
  case 413:
    return "Payload Too Large";
  case 416:
    return "Range Not Satisfiable";
  case 429:
    return "Too Many Requests";
  case 500:
    return "Internal Server Error";
  case 502:
    return "Bad Gateway";
  case 503:
    return "Service Unavailable";
  case 504:
    return "Gateway Timeout";
  default:
    return "Status";
  }
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

std::string percent_encode(std::string_view text, std::string_view keep) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c) || keep.find(c) != std::string_view::npos) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> parse_form(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const auto equal = part.find('=');
    const auto decode = [](std::string_view raw) {
      std::string spaced(raw);
      std::replace(spaced.begin(), spaced.end(), '+', ' ');
      return percent_decode(spaced).value_or(spaced);
    };
    pairs.emplace_back(decode(part.substr(0, equal)),
                       equal == std::string_view::npos ? "" : decode(part.substr(equal + 1)));
  }
  return pairs;
}

std::optional<ByteRange> parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view k_unit = "bytes=";
  if (!header.starts_with(k_unit)) return std::nullopt;
  header.remove_prefix(k_unit.size());
  const auto dash = header.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number(header.substr(0, dash));
  const auto last = number(header.substr(dash + 1));
  if (dash == 0) { // the last N bytes
    if (!last) return std::nullopt;
    if (*last == 0 || size == 0) return ByteRange{0, 0, false};
    return ByteRange{size - std::min(*last, size), size - 1, true};
  }
  if (!first || (dash + 1 < header.size() && !last)) return std::nullopt;
  if (last && *last < *first) return std::nullopt;
  if (*first >= size) return ByteRange{0, 0, false};
  return ByteRange{*first, std::min(last.value_or(size - 1), size - 1), true};
}

} // namespace modeld::test
