// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote_check.hpp"
#include "daemon/request_body.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

constexpr std::uint64_t k_longest_context = 1ULL << 32U; // tokens

Result<Response> start(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto body, body_object(request, {"ref", "profile", "context"}));
  RemoteCheck check;
  MODELD_ASSIGN(const auto text, required_text(body, "ref"));
  MODELD_ASSIGN(check.ref, ModelRef::parse(text));
  if (!check.ref.selector.empty()) {
    return fail(Errc::invalid_argument,
                fmt::format("checking '{}': a check is of a whole repository, not of '{}'", text,
                            check.ref.selector),
                "leave the selector out: the answer tells of every recipe");
  }
  check.ref.revision = check.ref.revision_or_main();
  MODELD_ASSIGN(const auto profile, optional_text(body, "profile"));
  check.profile = profile.value_or("strict");
  if (check.profile != "strict" && check.profile != "compat") {
    return fail(Errc::invalid_argument,
                fmt::format("reading the request: 'profile' is '{}', allowed are strict and compat",
                            check.profile));
  }
  MODELD_ASSIGN(const auto context, optional_number(body, "context"));
  check.context = context.value_or(0);
  if (check.context > k_longest_context) {
    return fail(Errc::invalid_argument,
                fmt::format("reading the request: 'context' is {}, allowed are 0 to {}",
                            check.context, k_longest_context));
  }
  MODELD_ASSIGN(auto token, request_token(request));
  MODELD_ASSIGN(const auto job,
                services.jobs.submit(check_request(check, request.peer.uid, std::move(token))));
  return Response::json({{"job", job->view().to_json()}}, 202);
}

} // namespace

void add_check_routes(Router& router, Services& services) {
  router.add("POST", "/v1/checks",
             [&services](const Request& request) { return start(services, request); });
}

} // namespace modeld::daemon
