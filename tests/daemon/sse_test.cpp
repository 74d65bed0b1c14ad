// SPDX-License-Identifier: Apache-2.0
#include "daemon/sse.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>

using namespace modeld;
using namespace modeld::daemon;

namespace {

api::Job job() {
  api::Job out;
  out.id = "a1";
  out.kind = "pull";
  out.ref = "org/name";
  out.state = "running";
  out.phase = "downloading";
  out.notice = "line one\nline two";
  out.done = 5;
  return out;
}

} // namespace

TEST_CASE("an event is type, id and one line of data", "[daemon][sse]") {
  const std::string text = sse_event({12, false, job()});
  CHECK(text.starts_with("event: change\nid: 12\ndata: {"));
  CHECK(text.ends_with("}\n\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 4); // a line feed inside is escaped
  const auto data = text.substr(text.find("data: ") + 6);
  const auto parsed = api::Job::from_json(boost::json::parse(data).as_object());
  REQUIRE(parsed);
  CHECK(parsed->notice == "line one\nline two");
  CHECK(sse_event({13, true, job()}).starts_with("event: end\nid: 13\n"));
}

TEST_CASE("progress has no id, and a heartbeat is a comment", "[daemon][sse]") {
  CHECK(sse_progress(job()).starts_with("event: progress\ndata: {"));
  CHECK(sse_heartbeat().starts_with(":"));
  CHECK(sse_heartbeat().ends_with("\n\n"));
}

TEST_CASE("Last-Event-ID that is no number asks for everything", "[daemon][sse]") {
  CHECK(parse_last_event_id("17") == 17);
  for (const char* text : {"", "x", "-1", "1x", " 1", "99999999999999999999999"}) {
    CHECK(parse_last_event_id(text) == 0);
  }
}
