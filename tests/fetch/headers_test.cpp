// SPDX-License-Identifier: Apache-2.0
#include "fetch/headers.hpp"

#include <catch2/catch.hpp>

using namespace modeld::fetch;
using std::chrono::seconds;

TEST_CASE("Headers::get finds names in any case", "[fetch][headers]") {
  Headers headers;
  headers.add("x-linked-ETAG", "  \"abc\"\r\n");
  CHECK(headers.get("X-Linked-Etag") == "\"abc\"");
  CHECK(headers.get("X-Linked") == "");
  CHECK_FALSE(headers.has("ETag"));
}

TEST_CASE("bare_etag strips every decoration", "[fetch][headers][C16][pitfall-6]") {
  CHECK(bare_etag("W/\"abc-gzip\"") == "abc");
  CHECK(bare_etag("\"abc\"") == "abc");
  CHECK(bare_etag("abc") == "abc");
  CHECK(bare_etag("W/\"abc\"") == "abc");
  CHECK(bare_etag("\"") == "");
  CHECK(is_strong_etag("\"abc\""));
  CHECK_FALSE(is_strong_etag("W/\"abc\""));
  CHECK_FALSE(is_strong_etag("abc"));
  CHECK_FALSE(is_strong_etag("\"\""));
}

TEST_CASE("parse_content_range takes only what the grammar allows", "[fetch][headers]") {
  const auto range = parse_content_range("bytes 5-9/20");
  REQUIRE(range);
  CHECK(range->first == 5u);
  CHECK(range->last == 9u);
  CHECK(range->total == 20u);
  CHECK(parse_content_range("bytes */20")->total == 20u);
  CHECK_FALSE(parse_content_range("bytes 0-1/*")->total);
  for (const char* bad : {"", "bytes", "bytes 5-/20", "bytes 9-5/20", "bytes -5/20", "items 0-1/2",
                          "bytes 0-1", "bytes 0-1/x", "bytes 0-18446744073709551616/20"}) {
    INFO(bad);
    CHECK_FALSE(parse_content_range(bad));
  }
}

TEST_CASE("next_link finds rel=next among others", "[fetch][headers][C12]") {
  CHECK(next_link("<https://h/a?cursor=x,y>; rel=\"next\"") == "https://h/a?cursor=x,y");
  CHECK(next_link("<https://h/1>; rel=\"prev\", <https://h/2>; rel=\"next\"") == "https://h/2");
  CHECK(next_link("</rel>;rel=next") == "/rel");
  CHECK_FALSE(next_link("<https://h/1>; rel=\"xet-auth\""));
  CHECK_FALSE(next_link(""));
  CHECK_FALSE(next_link("<https://h/1; rel=\"next\""));
}

TEST_CASE("wait_asked_for reads each form of advice", "[fetch][headers][C11][pitfall-23]") {
  const auto asked = [](const char* name, const char* value) {
    Headers headers;
    headers.add(name, value);
    return wait_asked_for(headers, 784111777); // Sun, 06 Nov 1994 08:49:37 GMT
  };
  CHECK(asked("Retry-After", "7") == seconds(7));
  CHECK(asked("Retry-After", "0") == seconds(0));
  CHECK(asked("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT") == seconds(30));
  CHECK(asked("Retry-After", "Sun, 06 Nov 1994 08:00:00 GMT") == seconds(0));
  CHECK_FALSE(asked("Retry-After", "soon"));
  CHECK(asked("Retry-After", "99999999999") == seconds(24 * 3600));
  CHECK(asked("RateLimit", "\"api\";r=0;t=55") == seconds(56));
  CHECK_FALSE(asked("RateLimit", "\"api\";r=489;t=55"));
}
