// SPDX-License-Identifier: Apache-2.0
#include "daemon/accounts.hpp"
#include "daemon/care_work.hpp"
#include "daemon/catalog.hpp"
#include "daemon/request_body.hpp"
#include "daemon/services.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <unistd.h>

namespace modeld::daemon {
namespace {

constexpr std::size_t k_all_items = SIZE_MAX;

Result<void> check_admin(const Peer& peer, std::string_view doing) {
  if (is_admin(peer)) return {};
  return fail(Errc::denied, fmt::format("{}: user {} may not", doing, named_user(peer.uid)),
              fmt::format("root and user {} may", named_user(::geteuid())));
}

// Jobs of one kind at a time: each looks at the whole store.
Result<Response> start(Services& services, const Request& request, const char* kind,
                       boost::json::object detail) {
  JobRequest job;
  job.kind = kind;
  job.ref = kind;
  job.key = fmt::format("{} {}", kind, boost::json::serialize(detail));
  job.detail = std::move(detail);
  job.uid = request.peer.uid;
  MODELD_ASSIGN(const auto started, services.jobs.submit(std::move(job)));
  return Response::json({{"job", started->view().to_json()}}, 202);
}

Result<Response> gc(Services& services, const Request& request) {
  MODELD_ASSIGN(auto body,
                body_object(request, {"dry_run", "grace_seconds", "unused_seconds", "size_target",
                                      "free_target", "order", "ignore_open_files"}));
  MODELD_ASSIGN(const bool dry_run, optional_flag(body, "dry_run"));
  MODELD_ASSIGN(const auto options, collect_options(body));
  MODELD_TRY(check_admin(request.peer, "collecting"));
  if (dry_run) {
    MODELD_TRY(services.store.flush_uses());
    MODELD_ASSIGN(const auto plan, store::plan_collection(services.store, options));
    return Response::json({{"plan", plan_json(plan, k_all_items)}});
  }
  body.erase("dry_run");
  return start(services, request, "gc", std::move(body));
}

Result<Response> fsck(Services& services, const Request& request) {
  MODELD_ASSIGN(auto body, body_object(request, {"repair", "deep", "rebuild"}));
  MODELD_TRY(optional_flag(body, "repair"));
  MODELD_TRY(optional_flag(body, "deep"));
  MODELD_TRY(optional_flag(body, "rebuild"));
  MODELD_TRY(check_admin(request.peer, "checking the store"));
  return start(services, request, "fsck", std::move(body));
}

Result<Response> scrub(Services& services, const Request& request) {
  MODELD_ASSIGN(auto body, body_object(request, {"bytes_per_second", "changed_only"}));
  MODELD_TRY(optional_number(body, "bytes_per_second"));
  MODELD_TRY(optional_flag(body, "changed_only"));
  MODELD_TRY(check_admin(request.peer, "scrubbing"));
  return start(services, request, "scrub", std::move(body));
}

Result<Response> repair(Services& services, const Request& request) {
  MODELD_ASSIGN(auto body, body_object(request, {"ref"}));
  MODELD_ASSIGN(const auto text, optional_text(body, "ref"));
  MODELD_ASSIGN(auto token, request_token(request));
  JobRequest job;
  job.ref = "everything";
  if (text) {
    MODELD_ASSIGN(const auto ref, ModelRef::parse(*text));
    MODELD_ASSIGN(const auto place, find_place(services.store, ref));
    if (place) MODELD_TRY(check_may_read(services.store, place->repo, request.peer));
    job.ref = *text;
  } else {
    MODELD_TRY(check_admin(request.peer, "repairing everything"));
  }
  job.kind = "repair";
  job.key = fmt::format("repair {}{}", job.ref,
                        token.empty() ? std::string() : fmt::format(" user {}", request.peer.uid));
  job.detail = std::move(body);
  job.uid = request.peer.uid;
  job.token = std::move(token);
  MODELD_ASSIGN(const auto started, services.jobs.submit(std::move(job)));
  return Response::json({{"job", started->view().to_json()}}, 202);
}

} // namespace

void add_care_routes(Router& router, Services& services) {
  const auto with = [&services](auto handler) {
    return [&services, handler](const Request& request) { return handler(services, request); };
  };
  router.add("POST", "/v1/gc", with(gc));
  router.add("POST", "/v1/fsck", with(fsck));
  router.add("POST", "/v1/scrub", with(scrub));
  router.add("POST", "/v1/repair", with(repair));
}

} // namespace modeld::daemon
