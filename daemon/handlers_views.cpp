// SPDX-License-Identifier: Apache-2.0
#include "daemon/accounts.hpp"
#include "daemon/catalog.hpp"
#include "daemon/link_work.hpp"
#include "daemon/request_body.hpp"
#include "daemon/services.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>

namespace modeld::daemon {
namespace {

// The daemon writes with its own rights: for somebody else it would write where they may not.
Result<void> check_admin(const Peer& peer, std::string_view doing) {
  if (is_admin(peer)) return {};
  return fail(Errc::denied,
              fmt::format("{}: user {} may not let the daemon write", doing, named_user(peer.uid)),
              fmt::format("modelctl link ... --print | sh makes the links with your own rights; "
                          "root and user {} may let the daemon make them",
                          named_user(::geteuid())));
}

Result<Response> link(Services& services, const Request& request) {
  MODELD_ASSIGN(auto body, body_object(request, {"ref", "all", "target", "root", "form",
                                                 "allow_copy", "no_symlinks", "reader", "plan"}));
  MODELD_ASSIGN(const auto asked, LinkRequest::from_json(body, request.peer.uid));
  if (!asked.plan) { // what is only told, anybody may hear who may read it
    MODELD_TRY(check_admin(request.peer, "showing a model in another program's folder"));
  }
  MODELD_ASSIGN(auto token, request_token(request));
  JobRequest job;
  job.kind = "link";
  job.ref = body.contains("ref") ? std::string(body.at("ref").as_string()) : "everything";
  job.key = fmt::format("link {} {}", request.peer.uid, boost::json::serialize(body));
  job.detail = std::move(body);
  job.uid = request.peer.uid;
  job.token = std::move(token);
  MODELD_ASSIGN(const auto started, services.jobs.submit(std::move(job)));
  return Response::json({{"job", started->view().to_json()}}, 202);
}

Result<Response> list(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto links, store::list_links(services.store));
  MODELD_ASSIGN(const auto standing, store::list_standing(services.store));
  boost::json::array views;
  for (const store::LinkRecord& one : links) {
    MODELD_ASSIGN(const bool allowed, may_read(services.store, one.repo, request.peer));
    if (allowed) views.push_back(link_json(one));
  }
  boost::json::array all;
  for (const store::StandingLink& one : standing) {
    all.push_back(standing_json(one));
  }
  return Response::json({{"views", std::move(views)}, {"standing", std::move(all)}});
}

Result<Response> unlink(Services& services, const Request& request) {
  const std::string id(request.part("id"));
  MODELD_ASSIGN(const auto links, store::list_links(services.store));
  MODELD_ASSIGN(const auto standing, store::list_standing(services.store));
  const auto is_it = [&id](const auto& one) { return one.id == id; };
  if (std::none_of(links.begin(), links.end(), is_it) &&
      std::none_of(standing.begin(), standing.end(), is_it)) {
    return fail(Errc::not_found, fmt::format("looking for view '{}': there is none", id));
  }
  MODELD_TRY(check_admin(request.peer, "hiding a model in another program's folder"));
  JobRequest job;
  job.kind = "unlink";
  job.ref = id;
  job.key = "unlink " + id;
  job.detail = {{"id", id}};
  job.uid = request.peer.uid;
  MODELD_ASSIGN(const auto started, services.jobs.submit(std::move(job)));
  return Response::json({{"job", started->view().to_json()}}, 202);
}

} // namespace

void add_view_routes(Router& router, Services& services) {
  const auto with = [&services](auto handler) {
    return [&services, handler](const Request& request) { return handler(services, request); };
  };
  router.add("POST", "/v1/views", with(link));
  router.add("GET", "/v1/views", with(list));
  router.add("DELETE", "/v1/views/{id}", with(unlink));
}

} // namespace modeld::daemon
