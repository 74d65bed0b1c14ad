// SPDX-License-Identifier: Apache-2.0
#include "daemon/http.hpp"

#include "daemon/safe_json.hpp"

#include "schema/api.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

std::string_view find_in(const std::map<std::string, std::string, std::less<>>& map,
                         std::string_view name) {
  const auto at = map.find(name);
  return at == map.end() ? std::string_view{} : std::string_view(at->second);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

} // namespace

std::string_view Request::header(std::string_view name) const {
  return find_in(headers, name);
}

std::string_view Request::part(std::string_view name) const {
  return find_in(parts, name);
}

Response Response::json(const boost::json::object& object, int status) {
  Response response;
  response.status = status;
  response.body = safe_json(object) + '\n';
  return response;
}

Response Response::text(std::string body, std::string content_type) {
  Response response;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  return response;
}

Response Response::problem(const Error& error) {
  Response response = json(api::problem_to_json(error), info(error.code).http_status);
  response.content_type = "application/problem+json";
  return response;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const bool whole = text.size() - i > 2;
    const int high = whole ? hex_digit(text[i + 1]) : -1;
    const int low = whole ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
      return fail(Errc::invalid_argument,
                  fmt::format("reading path '{}': '%' must be followed by two hexadecimal digits, "
                              "not both 0",
                              text));
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

} // namespace modeld::daemon
