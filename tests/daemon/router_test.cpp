// SPDX-License-Identifier: Apache-2.0
#include "daemon/router.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <stdexcept>

using namespace modeld;
using namespace modeld::daemon;
using Catch::Contains;

namespace {

// Answers with the route's pattern and the parts that were found.
Router echo_router() {
  Router router;
  const auto add = [&router](const char* method, const char* pattern) {
    router.add(method, pattern, [pattern](const Request& request) -> Result<Response> {
      std::string text = pattern;
      for (const auto& [name, value] : request.parts) {
        text += " " + name + "=" + value;
      }
      return Response::text(text, "text/plain");
    });
  };
  add("GET", "/v1/jobs");
  add("GET", "/v1/jobs/{id}");
  add("DELETE", "/v1/jobs/{id}");
  add("GET", "/v1/jobs/{id}/events");
  add("GET", "/v1/snapshots/{ref...}");
  add("GET", "/{repo...}/resolve/{rev}/{file}");
  return router;
}

std::string ask(const std::string& method, const std::string& path) {
  Request request;
  request.method = method;
  request.path = path;
  const Response response = echo_router().handle(std::move(request));
  return std::to_string(response.status) + " " + std::get<std::string>(response.body);
}

} // namespace

TEST_CASE("Router::handle finds fixed, named and remaining parts", "[daemon][router]") {
  CHECK(ask("GET", "/v1/jobs") == "200 /v1/jobs");
  CHECK(ask("GET", "/v1/jobs/a1") == "200 /v1/jobs/{id} id=a1");
  CHECK(ask("GET", "/v1/jobs/a1/events") == "200 /v1/jobs/{id}/events id=a1");
  CHECK(ask("GET", "/v1/snapshots/org/name@main") ==
        "200 /v1/snapshots/{ref...} ref=org/name@main");
}

TEST_CASE("Router::handle decodes each part once, after matching", "[daemon][router]") {
  CHECK(ask("GET", "/v1/jobs/a%2Fb") == "200 /v1/jobs/{id} id=a/b");
  CHECK(ask("GET", "/v1/jobs/%252F") == "200 /v1/jobs/{id} id=%2F");
  CHECK(ask("GET", "/org/name/resolve/refs%2Fpr%2F1/b%20c") ==
        "200 /{repo...}/resolve/{rev}/{file} file=b c repo=org/name rev=refs/pr/1");
  CHECK_THAT(ask("GET", "/v1/jobs/%2"), Contains("400 ") && Contains("two hexadecimal digits"));
  CHECK_THAT(ask("GET", "/v1/jobs/%zz"), Contains("400 "));
  CHECK_THAT(ask("GET", "/v1/jobs/%00"), Contains("400 "));
}

TEST_CASE("Router::handle answers 404 for a path and 405 for a method it does not know",
          "[daemon][router]") {
  CHECK_THAT(ask("GET", "/v2/jobs"), Contains("404 ") && Contains("\"code\":\"not_found\""));
  CHECK_THAT(ask("GET", "/v1/jobs/"), Contains("404 "));
  CHECK_THAT(ask("GET", "//v1/jobs"), Contains("404 "));
  CHECK_THAT(ask("GET", ""), Contains("404 "));
  CHECK_THAT(ask("GET", "*"), Contains("404 "));
  CHECK_THAT(ask("POST", "/v1/jobs/a1"), Contains("405 ") && Contains("DELETE, GET"));
}

TEST_CASE("Router::handle makes a problem of an error, and internal of an exception",
          "[daemon][router]") {
  Router router;
  router.add("GET", "/error", [](const Request&) -> Result<Response> {
    return fail(Error{Errc::no_space, "writing 'x': full", "free some", {{"needed", "5"}}, 0});
  });
  router.add("GET", "/throw",
             [](const Request&) -> Result<Response> { throw std::runtime_error("boom"); });
  Request request;
  request.method = "GET";
  request.path = "/error";
  const Response response = router.handle(request);
  CHECK(response.status == 507);
  CHECK(response.content_type == "application/problem+json");
  const auto body = boost::json::parse(std::get<std::string>(response.body)).as_object();
  CHECK(body.at("type").as_string() == "urn:modeld:error:no_space");
  CHECK(body.at("status").as_int64() == 507);
  CHECK(body.at("detail").as_string() == "writing 'x': full");
  CHECK(body.at("hint").as_string() == "free some");
  CHECK(body.at("details").at("needed").as_string() == "5");
  request.path = "/throw";
  CHECK(router.handle(request).status == 500);
}
