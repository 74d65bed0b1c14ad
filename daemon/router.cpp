// SPDX-License-Identifier: Apache-2.0
#include "daemon/router.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <new>
#include <optional>
#include <set>

namespace modeld::daemon {
namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1); // the slash in front
    const auto end = path.find('/');
    parts.emplace_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view{} : path.substr(end);
  }
  return parts;
}

bool is_name(std::string_view part) {
  return part.starts_with('{') && part.ends_with('}');
}

bool is_rest(std::string_view part) {
  return is_name(part) && part.ends_with("...}");
}

std::string_view name_of(std::string_view part) {
  const std::size_t marks = is_rest(part) ? 4 : 1; // "...}" or "}"
  return part.substr(1, part.size() - 1 - marks);
}

using Parts = std::map<std::string, std::string, std::less<>>;

// Raw parts by name, or nothing. A {name...} takes what the fixed parts behind it leave.
std::optional<Parts> match(const std::vector<std::string>& pattern,
                           const std::vector<std::string>& path) {
  Parts found;
  std::size_t at = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::size_t behind = pattern.size() - i - 1;
    if (path.size() - at < behind + 1) return {};
    if (!is_name(pattern[i])) {
      if (path[at++] != pattern[i]) return {};
      continue;
    }
    const std::size_t take = is_rest(pattern[i]) ? path.size() - at - behind : 1;
    std::string value;
    for (std::size_t n = 0; n < take; ++n) {
      if (path[at].empty()) return {};
      value += n == 0 ? path[at++] : '/' + path[at++];
    }
    found.emplace(name_of(pattern[i]), std::move(value));
  }
  if (at != path.size()) return {};
  return found;
}

Result<Response> run(const Handler& handler, const Request& request) {
  try {
    return handler(request);
  } catch (const std::bad_alloc&) {
    return fail(Errc::internal, "answering the request: out of memory");
  } catch (const std::exception& error) {
    return fail(Errc::internal, fmt::format("answering the request: {}", error.what()));
  }
}

Response wrong_method(const Request& request, const std::set<std::string>& allowed) {
  Response response =
      Response::problem({Errc::invalid_argument,
                         fmt::format("'{}' does not take {}, it takes {}", request.path,
                                     request.method, fmt::join(allowed, ", ")),
                         {},
                         {},
                         0});
  response.status = 405;
  response.headers.emplace_back("Allow", fmt::format("{}", fmt::join(allowed, ", ")));
  return response;
}

} // namespace

void Router::add(std::string method, std::string pattern, Handler handler) {
  std::vector<std::string> parts = split(pattern);
  routes_.push_back({std::move(method), std::move(pattern), std::move(parts), std::move(handler)});
}

Response Router::handle(Request request) const {
  const std::vector<std::string> path =
      request.path.starts_with('/') ? split(request.path) : std::vector<std::string>{};
  std::set<std::string> allowed;
  for (const Route& route : routes_) {
    auto parts = match(route.parts, path);
    if (!parts) continue;
    if (route.method != request.method) {
      allowed.insert(route.method);
      continue;
    }
    for (auto& [name, value] : *parts) {
      auto decoded = percent_decode(value);
      if (!decoded) return Response::problem(decoded.error());
      value = *std::move(decoded);
    }
    request.parts = *std::move(parts);
    auto response = run(route.handler, request);
    return response ? *std::move(response) : Response::problem(response.error());
  }
  if (!allowed.empty()) return wrong_method(request, allowed);
  return Response::problem({Errc::not_found,
                            fmt::format("no route '{}'", request.path),
                            "GET /v1/openapi.yaml lists all routes",
                            {},
                            0});
}

std::vector<Router::Entry> Router::entries() const {
  std::vector<Entry> entries;
  entries.reserve(routes_.size());
  for (const Route& route : routes_) {
    entries.push_back({route.method, route.pattern});
  }
  return entries;
}

} // namespace modeld::daemon
