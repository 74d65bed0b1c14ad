// SPDX-License-Identifier: Apache-2.0
#include "daemon/accounts.hpp"
#include "daemon/catalog.hpp"
#include "daemon/import_work.hpp"
#include "daemon/link_subject.hpp"
#include "daemon/request_body.hpp"
#include "daemon/services.hpp"
#include "store/bundle.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <unistd.h>

namespace modeld::daemon {
namespace {

Result<Response> import(Services& services, const Request& request) {
  MODELD_ASSIGN(auto body, body_object(request, {"path", "source", "dry_run", "may_link",
                                                 "assume_complete", "repo"}));
  MODELD_ASSIGN(const auto checked, ImportRequest::from_json(body));
  if (!is_admin(request.peer)) { // it reads with the daemon's rights
    return fail(Errc::denied,
                fmt::format("importing '{}': user {} may not let the daemon read",
                            checked.path.string(), named_user(request.peer.uid)),
                fmt::format("root and user {} may; a daemon of your own (modeld without arguments) "
                            "takes in what you can read",
                            named_user(::geteuid())));
  }
  JobRequest job;
  job.kind = "import";
  job.ref = checked.path.string();
  job.key = "import " + boost::json::serialize(body);
  job.detail = std::move(body);
  job.uid = request.peer.uid;
  MODELD_ASSIGN(const auto started, services.jobs.submit(std::move(job)));
  return Response::json({{"job", started->view().to_json()}}, 202);
}

// Without a selector everything that was built from the snapshot goes along, with one only what it
// means.
Result<Response> bundle(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto ref, ref_part(request));
  MODELD_ASSIGN(const auto snapshot,
                require_snapshot(services.store, ModelRef{ref.repo, ref.revision, {}}));
  MODELD_TRY(check_may_read(services.store, snapshot.repo, request.peer));
  const Place place{snapshot.repo, snapshot.commit};
  MODELD_ASSIGN(auto subject, whole_subject(services.store, place));
  if (!ref.selector.empty()) {
    MODELD_ASSIGN(auto chosen, selected_subject(services.store, place, ref.selector));
    if (!chosen) {
      return fail(Errc::not_found, fmt::format("exporting '{}': it is not built", ref.str()),
                  fmt::format("modelctl get {} builds it", ref.str()));
    }
    subject.variants = std::move(chosen->variants);
  }
  auto reader = std::make_shared<store::BundleReader>(
      services.store,
      store::BundleContent{snapshot, std::move(subject.variants), std::move(subject.revisions)});
  Response response;
  response.content_type = "application/x-tar";
  const std::uint64_t size = reader->size();
  response.body =
      StreamBody{size, [reader](std::span<std::byte> into) { return reader->read(into); }};
  return response;
}

} // namespace

void add_import_routes(Router& router, Services& services) {
  router.add("POST", "/v1/import",
             [&services](const Request& request) { return import(services, request); });
  router.add("GET", "/v1/bundles/{ref...}",
             [&services](const Request& request) { return bundle(services, request); });
}

} // namespace modeld::daemon
