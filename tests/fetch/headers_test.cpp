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
  const auto next = [](std::string_view header) { return next_link(header).value(); };
  CHECK(next("<https://h/a?cursor=x,y>; rel=\"next\"") == "https://h/a?cursor=x,y");
  CHECK(next("<https://h/1>; rel=\"prev\", <https://h/2>; rel=\"next\"") == "https://h/2");
  CHECK(next("</rel>;rel=next") == "/rel");
  CHECK(next("</a>; REL=\"NEXT\"") == "/a");
  CHECK(next("</a> ; rel = \"next\"") == "/a");
  CHECK(next("</a>; rel=\"prefetch next\"") == "/a");
  CHECK(next("</a>; rel='next'") == "/a");
  CHECK(next("</a>; xrel=\"prev\"; rel=\"next\"; type=\"a/b\"") == "/a");
  CHECK(next("</x>; title=\"y; rel=next, <z>\", </a>; title=\"q\\\"\"; rel=next") == "/a");
  CHECK(next("</a>; rel=\"prev\" </b>; rel=\"next\"") == "/b"); // without its comma
  CHECK_FALSE(next("<https://h/1>; rel=\"xet-auth\""));
  CHECK_FALSE(next("<https://h/next>; rel=\"prev\""));
  CHECK_FALSE(next(""));
  CHECK_FALSE(next("what is this"));
}

TEST_CASE("next_link refuses a header that speaks of a next page and cannot be read",
          "[fetch][headers][C12]") {
  for (const char* header : {"<https://h/1; rel=\"next\"", "https://h/1; rel=\"next\""}) {
    INFO(header);
    const auto link = next_link(header);
    REQUIRE_FALSE(link);
    CHECK(link.error().code == modeld::Errc::malformed);
  }
}

TEST_CASE("Headers::joined gives all lines of one name", "[fetch][headers]") {
  Headers headers;
  headers.add("Link", "</1>; rel=\"first\"");
  headers.add("Other", "x");
  headers.add("link", "</2>; rel=\"next\"");
  CHECK(headers.joined("LINK") == "</1>; rel=\"first\", </2>; rel=\"next\"");
  CHECK(headers.joined("absent").empty());
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
  CHECK(asked("Retry-After", "1.5") == seconds(2));
  CHECK_FALSE(asked("Retry-After", "-5"));
}

TEST_CASE("wait_asked_for reads the older pairs of rate limit headers", "[fetch][headers][C11]") {
  const auto asked = [](const std::string& prefix, const char* remaining, const char* reset) {
    Headers headers;
    headers.add(prefix + "Remaining", remaining);
    headers.add(prefix + "Reset", reset);
    return wait_asked_for(headers, 1'700'000'000);
  };
  CHECK(asked("RateLimit-", "0", "7") == seconds(8));
  CHECK(asked("x-ratelimit-", "0", "1700000020") == seconds(21)); // a moment
  CHECK(asked("X-RateLimit-", "0", "1600000000") == seconds(1));
  CHECK_FALSE(asked("RateLimit-", "3", "7"));
  CHECK_FALSE(asked("RateLimit-", "0", "soon"));
}
