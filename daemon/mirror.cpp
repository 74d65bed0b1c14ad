// SPDX-License-Identifier: Apache-2.0
#include "daemon/mirror.hpp"

#include "daemon/mirror_answers.hpp"
#include "daemon/mirror_path.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::daemon {
namespace {

using Kind = MirrorPath::Kind;

// Nobody in particular: over TCP the kernel does not say who it is.
constexpr Peer k_anybody{65534, 65534, 0};

// DNS rebinding: a page in a browser must not read this port under a name of its own.
bool is_local_host(std::string_view host) {
  const std::string_view name =
      host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return name == "localhost" || name == "[::1]" || name.starts_with("127.");
}

std::string joined(const std::vector<std::string>& parts, std::size_t first, std::size_t last) {
  std::string out;
  for (std::size_t i = first; i < last; ++i) {
    out += (i == first ? "" : "/") + parts[i];
  }
  return out;
}

// What the front of `rest` means as a revision, as long as can be, and how many parts that is.
struct Located {
  Snapshot snapshot;
  std::size_t used = 0;
};

Result<std::optional<Located>> locate(Services& services, const RepoId& repo,
                                      const std::vector<std::string>& rest) {
  constexpr std::size_t k_longest = 8; // parts of a revision
  for (std::size_t length = std::min(rest.size(), k_longest); length > 0; --length) {
    const auto ref = ModelRef::parse(repo.text + "@" + joined(rest, 0, length));
    if (!ref || !ref->selector.empty()) continue;
    MODELD_ASSIGN(const auto place, find_place(services.store, *ref));
    if (!place) continue;
    MODELD_ASSIGN(const bool open, may_read(services.store, place->repo, k_anybody));
    if (!open) continue;
    MODELD_ASSIGN(auto snapshot, services.store.find_snapshot(place->repo, place->commit));
    if (snapshot) return std::optional(Located{*std::move(snapshot), length});
  }
  return std::optional<Located>{};
}

Result<bool> knows_repo(Services& services, const RepoId& repo) {
  MODELD_ASSIGN(const bool open, may_read(services.store, repo, k_anybody));
  if (!open) return false;
  MODELD_ASSIGN(const auto refs, services.store.list_refs());
  MODELD_ASSIGN(const auto snapshots, services.store.list_snapshots());
  return std::any_of(refs.begin(), refs.end(), [&](const auto& ref) { return ref.repo == repo; }) ||
         std::any_of(snapshots.begin(), snapshots.end(),
                     [&](const auto& one) { return one.repo == repo; });
}

Result<Response> answer(Services& services, const Request& request, MirrorPath path) {
  if (path.kind == Kind::whoami) return hub_error(401, {}, "Invalid username or password.");
  if (path.kind == Kind::other) return hub_error(404, "RepoNotFound", "Repository not found");
  const auto repo = RepoId::parse(path.repo);
  if (!repo) return hub_error(400, {}, repo.error().message);
  MODELD_ASSIGN(const bool known, knows_repo(services, *repo));
  if (!known) return hub_error(404, "RepoNotFound", "Repository not found");
  if (path.kind == Kind::auth_check) return Response::json({});
  if (path.kind == Kind::refs) return hub_refs(services.store, *repo);
  if (path.rest.empty()) path.rest.emplace_back("main");
  MODELD_ASSIGN(const auto located, locate(services, *repo, path.rest));
  if (!located) {
    return hub_error(404, "RevisionNotFound", fmt::format("Invalid rev id: {}", path.rest.front()));
  }
  const std::string file = joined(path.rest, located->used, path.rest.size());
  const HubView view{services.store, located->snapshot};
  switch (path.kind) {
  case Kind::info:
    return hub_info(view);
  case Kind::tree:
    return hub_tree(view, file);
  case Kind::paths_info:
    return hub_paths_info(view, request);
  case Kind::raw:
    return hub_raw(view, file);
  default:
    return hub_file(view, file, request);
  }
}

} // namespace

Response Mirror::handle(const Request& request) const {
  if (!is_local_host(request.header("host"))) {
    return hub_error(421, {}, "this port answers under the names of this machine only");
  }
  auto path = parse_mirror_path(request.path);
  if (!path) return hub_error(400, {}, "Malformed path");
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const bool asks = request.method == "POST" && path->kind == Kind::paths_info;
  if (!reads && !asks) return hub_error(405, {}, "Method not allowed");
  auto response = answer(services_, request, *std::move(path));
  if (response) return *std::move(response);
  return hub_error(response.error().code == Errc::not_found ? 404 : 503, {},
                   response.error().message);
}

} // namespace modeld::daemon
