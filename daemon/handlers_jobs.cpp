// SPDX-License-Identifier: Apache-2.0
#include "daemon/catalog.hpp"
#include "daemon/services.hpp"
#include "daemon/sse.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

// Jobs are shown to those who take part in them: a name of a private repository is not for others.
bool may_see(const Job& job, const Peer& peer) {
  return is_admin(peer) || job.has_user(peer.uid);
}

Result<std::shared_ptr<Job>> find(Services& services, const Request& request) {
  MODELD_ASSIGN(auto job, services.jobs.find(request.part("id")));
  if (may_see(*job, request.peer)) return job;
  return fail(Errc::not_found,
              fmt::format("looking for job '{}': there is none", request.part("id")),
              "modelctl jobs lists the jobs");
}

Response answer(const Job& job) {
  return Response::json({{"job", job.view().to_json()}});
}

Result<Response> list(Services& services, const Request& request) {
  boost::json::array out;
  for (const auto& job : services.jobs.list()) {
    if (may_see(*job, request.peer)) out.push_back(job->view().to_json());
  }
  return Response::json({{"jobs", std::move(out)}});
}

Result<Response> show(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto job, find(services, request));
  return answer(*job);
}

Result<Response> cancel(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto job, find(services, request));
  MODELD_TRY(services.jobs.cancel(*job));
  return answer(*job);
}

Result<Response> events(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto job, find(services, request));
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.body = EventBody{job, parse_last_event_id(request.header("last-event-id"))};
  return response;
}

} // namespace

void add_job_routes(Router& router, Services& services) {
  const auto with = [&services](auto handler) {
    return [&services, handler](const Request& request) { return handler(services, request); };
  };
  router.add("GET", "/v1/jobs", with(list));
  router.add("GET", "/v1/jobs/{id}", with(show));
  router.add("DELETE", "/v1/jobs/{id}", with(cancel));
  router.add("GET", "/v1/jobs/{id}/events", with(events));
}

} // namespace modeld::daemon
