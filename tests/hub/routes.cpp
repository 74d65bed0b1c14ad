// SPDX-License-Identifier: Apache-2.0
// Which request goes where. Paths are matched undecoded on their marker parts ("/resolve/",
// "/tree/", ...), and each component is decoded once afterwards (hub-protocol.md 1.1).
#include "tests/hub/routes.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <array>

namespace modeld::test {
namespace {

constexpr std::array<std::string_view, 7> k_api_markers{
    "/revision/", "/tree/",      "/paths-info/",    "/refs",
    "/commits/",  "/auth-check", "/xet-read-token/"};

struct Split {
  std::string id;
  std::string_view marker; ///< empty: none found
  std::string_view rest;
};

template <std::size_t N>
Split split_at_marker(std::string_view path, const std::array<std::string_view, N>& markers) {
  Split best{percent_decode(path).value_or(""), {}, {}};
  std::size_t first = path.size();
  for (const std::string_view marker : markers) {
    const auto at = path.find(marker);
    if (at >= first) continue;
    const std::string_view rest = path.substr(at + marker.size());
    if (!marker.ends_with('/') && !rest.empty()) continue;
    first = at;
    best = {percent_decode(path.substr(0, at)).value_or(""), marker, rest};
  }
  return best;
}

} // namespace

Answer error_answer(unsigned status, std::string_view code, std::string_view message) {
  Answer answer;
  answer.status = status;
  answer.set("Content-Type", "application/json; charset=utf-8");
  answer.set("X-Error-Code", std::string(code));
  answer.set("X-Error-Message", std::string(message));
  answer.text = boost::json::serialize(boost::json::object{{"error", message}});
  return answer;
}

Answer Routes::answer(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD" && request.method != "POST") {
    return error_answer(405, "", "Method not allowed");
  }
  if (request.origin == Origin::data) return data(request);
  std::string_view path = request.path();
  if (!path.starts_with(context_.prefix + "/")) return error_answer(404, "", "Not Found");
  path.remove_prefix(context_.prefix.size() + 1);
  if (path.starts_with("api/")) return api(request, path.substr(4));
  constexpr std::array<std::string_view, 2> k_markers{"/resolve/", "/raw/"};
  const Split split = split_at_marker(path, k_markers);
  if (split.marker == "/resolve/") return resolve(request, split.id, split.rest);
  if (split.marker == "/raw/") return raw(request, split.id, split.rest);
  return error_answer(404, "", "Not Found");
}

Answer Routes::api(const Request& request, std::string_view rest) const {
  if (rest == "whoami-v2") {
    if (request.token().empty() || !repositories_->knows(request.token())) {
      return error_answer(401, "", "Invalid username or password.");
    }
    Answer answer;
    answer.set("Content-Type", "application/json; charset=utf-8");
    answer.text = R"({"type":"user","name":"tester","auth":{"type":"access_token"}})";
    return answer;
  }
  constexpr std::string_view k_cache = "resolve-cache/models/";
  if (rest.starts_with(k_cache)) return resolve_cache(request, rest.substr(k_cache.size()));
  constexpr std::string_view k_models = "models/";
  if (!rest.starts_with(k_models)) return error_answer(404, "", "Not Found");
  const Split split = split_at_marker(rest.substr(k_models.size()), k_api_markers);
  return repo_route(request, split.id, split.marker, split.rest);
}

Answer Routes::repo_route(const Request& request, const std::string& id, std::string_view marker,
                          std::string_view rest) const {
  if (auto to = repositories_->new_name(id)) return moved(request, id, *to);
  const Access access = open(request, id, marker == "/auth-check" ? Need::content : Need::metadata);
  if (access.repository == nullptr) return access.refusal;
  const HubRepository& repository = *access.repository;
  if (marker.empty()) return info(request, repository, "main");
  if (marker == "/tree/") return tree(request, repository, rest);
  if (marker == "/refs") return refs(request, repository);
  const std::string revision = percent_decode(rest).value_or("");
  if (marker == "/revision/") return info(request, repository, revision);
  if (marker == "/paths-info/") return paths_info(request, repository, revision);
  if (marker == "/commits/") return commits(repository, revision);
  if (marker == "/auth-check") return Answer{};
  return error_answer(404, "", "Not Found");
}

/// A renamed repository: 307 to the same address under the new name, relative, with the query.
Answer Routes::moved(const Request& request, const std::string& from, const std::string& to) const {
  Answer answer;
  answer.status = 307;
  std::string target = request.target;
  const auto at = target.find(from);
  if (at == std::string::npos) return error_answer(400, "", "Invalid repository name");
  target.replace(at, from.size(), to);
  answer.set("Location", target);
  answer.set("Content-Type", "text/plain; charset=utf-8");
  answer.text = "Temporary Redirect. Redirecting to " + target;
  return answer;
}

Routes::Access Routes::open(const Request& request, const std::string& id, Need need) const {
  const std::string_view token = request.token();
  if (!token.empty() && !repositories_->knows(token)) {
    return {nullptr, error_answer(401, "", "Invalid credentials in Authorization header")};
  }
  const HubRepository* repository = repositories_->find(id);
  const bool opened = repositories_->opens(token, id);
  if (repository == nullptr || (repository->is_private && !opened)) {
    if (token.empty()) {
      return {nullptr, error_answer(401, "RepoNotFound", "Invalid username or password.")};
    }
    return {nullptr, error_answer(404, "RepoNotFound", "Repository not found")};
  }
  if (repository->disabled) {
    return {nullptr, error_answer(403, "", "Access to this resource is disabled.")};
  }
  if (need == Need::content && !repository->gated.empty() && !opened) {
    const bool anonymous = token.empty();
    return {nullptr,
            error_answer(anonymous ? 401 : 403, "GatedRepo",
                         fmt::format("Access to model {} is restricted{}", id,
                                     anonymous ? ". You must have access to it and be "
                                                 "authenticated to access it. Please log in."
                                               : " and you are not in the authorized list."))};
  }
  return {repository, {}};
}

std::optional<std::pair<std::string, std::string>> split_revision(const HubRepository& repository,
                                                                  std::string_view rest) {
  for (const std::string& name : repository.ref_names()) {
    for (const std::string& spelling : {name, percent_encode(name)}) {
      if (!rest.starts_with(spelling)) continue;
      const std::string_view after = rest.substr(spelling.size());
      if (!after.empty() && after.front() != '/') continue;
      const auto path = percent_decode(after.empty() ? after : after.substr(1));
      if (!path) return std::nullopt;
      return std::pair{name, *path};
    }
  }
  const auto slash = rest.find('/');
  const auto revision = percent_decode(rest.substr(0, slash));
  const auto path = percent_decode(slash == std::string_view::npos ? "" : rest.substr(slash + 1));
  if (!revision || !path) return std::nullopt;
  return std::pair{*revision, *path};
}

} // namespace modeld::test
