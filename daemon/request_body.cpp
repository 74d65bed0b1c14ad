// SPDX-License-Identifier: Apache-2.0
#include "daemon/request_body.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace modeld::daemon {
namespace {

tl::unexpected<Error> wrong_type(std::string_view name, std::string_view expected) {
  return fail(Errc::invalid_argument,
              fmt::format("reading the request: member '{}' must be {}", name, expected));
}

} // namespace

Result<boost::json::object> body_object(const Request& request,
                                        std::initializer_list<std::string_view> known) {
  auto parsed = parse_json(request.body, "the request");
  if (!parsed) {
    return fail(Errc::invalid_argument, parsed.error().message,
                "the body is JSON; GET /v1/openapi.yaml describes it");
  }
  if (!parsed->is_object()) {
    return fail(Errc::invalid_argument, "reading the request: the body is no JSON object");
  }
  for (const auto& [name, value] : parsed->get_object()) {
    if (std::find(known.begin(), known.end(), std::string_view(name)) == known.end()) {
      return fail(Errc::invalid_argument,
                  fmt::format("reading the request: no member '{}', known are {}",
                              std::string_view(name), fmt::join(known, ", ")));
    }
  }
  return std::move(parsed->get_object());
}

Result<std::string> required_text(const boost::json::object& body, std::string_view name) {
  MODELD_ASSIGN(auto text, optional_text(body, name));
  if (!text) {
    return fail(Errc::invalid_argument,
                fmt::format("reading the request: member '{}' is missing", name));
  }
  return *std::move(text);
}

Result<std::optional<std::string>> optional_text(const boost::json::object& body,
                                                 std::string_view name) {
  const auto* value = body.if_contains(name);
  if (value == nullptr) return std::optional<std::string>{};
  if (!value->is_string()) return wrong_type(name, "text");
  return std::optional<std::string>(std::string(value->get_string()));
}

Result<std::optional<std::uint64_t>> optional_number(const boost::json::object& body,
                                                     std::string_view name) {
  if (body.if_contains(name) == nullptr) return std::optional<std::uint64_t>{};
  const auto number = json_uint(body, name);
  if (!number) return wrong_type(name, "a whole number, not negative");
  return std::optional<std::uint64_t>(*number);
}

Result<std::vector<std::string>> optional_texts(const boost::json::object& body,
                                                std::string_view name) {
  constexpr std::size_t k_most = 1000;
  const auto* value = body.if_contains(name);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  if (!value->is_array()) return wrong_type(name, "a list of texts");
  if (value->get_array().size() > k_most) {
    return wrong_type(name, fmt::format("a list of at most {} texts, it has {}", k_most,
                                        value->get_array().size()));
  }
  for (const auto& one : value->get_array()) {
    if (!one.is_string()) return wrong_type(name, "a list of texts");
    texts.emplace_back(one.get_string());
  }
  return texts;
}

Result<bool> optional_flag(const boost::json::object& body, std::string_view name) {
  const auto* value = body.if_contains(name);
  if (value == nullptr) return false;
  if (!value->is_bool()) return wrong_type(name, "true or false");
  return value->get_bool();
}

Result<fetch::Token> request_token(const Request& request) {
  constexpr std::string_view k_scheme = "Bearer ";
  const std::string_view header = request.header("authorization");
  if (header.empty()) return fetch::Token{};
  if (!header.starts_with(k_scheme)) {
    return fail(Errc::invalid_argument,
                "reading the Authorization header: the only scheme is 'Bearer'");
  }
  return fetch::Token::parse(header.substr(k_scheme.size()));
}

Result<ModelRef> ref_part(const Request& request) {
  return ModelRef::parse(request.part("ref"));
}

} // namespace modeld::daemon
