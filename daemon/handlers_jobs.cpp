// SPDX-License-Identifier: Apache-2.0
#include "daemon/catalog.hpp"
#include "daemon/log.hpp"
#include "daemon/request_body.hpp"
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

Result<std::uint64_t> wanted_rate(const Request& request) {
  MODELD_ASSIGN(const auto body, body_object(request, {"limit_rate"}));
  MODELD_ASSIGN(const auto rate, optional_number(body, "limit_rate"));
  if (rate) return *rate;
  return fail(Errc::invalid_argument, "reading the body: member 'limit_rate' is missing",
              "bytes per second; 0 lifts the limit");
}

Response bandwidth_answer(const fetch::Bandwidth& bandwidth) {
  return Response::json({{"limit_rate", bandwidth.limit()}});
}

Result<Response> show_limit(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto job, find(services, request));
  return bandwidth_answer(*job->bandwidth());
}

// A pull's own limit, while it waits or runs.
Result<Response> limit_job(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto job, find(services, request));
  MODELD_ASSIGN(const std::uint64_t rate, wanted_rate(request));
  if (job->kind() != "pull") {
    return fail(Errc::invalid_argument,
                fmt::format("limiting job '{}': its kind is '{}', and only a pull downloads",
                            job->id(), job->kind()),
                "what a build needs is fetched by a pull of its own: modelctl jobs lists it");
  }
  if (job->finished()) {
    return fail(Errc::conflict, fmt::format("limiting job '{}': it is finished", job->id()));
  }
  job->set_limit_rate(rate);
  return bandwidth_answer(*job->bandwidth());
}

// Of all downloads together, until the daemon ends.
Result<Response> limit_all(Services& services, const Request& request) {
  if (!is_admin(request.peer)) {
    return fail(Errc::denied,
                fmt::format("limiting all downloads: user {} may not", request.peer.uid),
                "root and the daemon's own user may; your own pulls can be limited one by one");
  }
  MODELD_ASSIGN(const std::uint64_t rate, wanted_rate(request));
  services.bandwidth->set_limit(rate);
  log_info("bandwidth of all downloads: {} bytes per second (0: no limit), by user {}", rate,
           request.peer.uid);
  return bandwidth_answer(*services.bandwidth);
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
  router.add("GET", "/v1/jobs/{id}/bandwidth", with(show_limit));
  router.add("PUT", "/v1/jobs/{id}/bandwidth", with(limit_job));
  router.add("GET", "/v1/bandwidth",
             [&services](const Request&) { return bandwidth_answer(*services.bandwidth); });
  router.add("PUT", "/v1/bandwidth", with(limit_all));
}

} // namespace modeld::daemon
