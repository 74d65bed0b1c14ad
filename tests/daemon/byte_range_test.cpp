// SPDX-License-Identifier: Apache-2.0
#include "daemon/byte_range.hpp"

#include <catch2/catch.hpp>

using modeld::daemon::ByteRange;
using modeld::daemon::parse_range;
using Kind = ByteRange::Kind;

TEST_CASE("parse_range reads the three forms of one range", "[daemon][range]") {
  CHECK(parse_range("bytes=0-0", 10) == ByteRange{Kind::part, 0, 1});
  CHECK(parse_range("bytes=2-4", 10) == ByteRange{Kind::part, 2, 3});
  CHECK(parse_range("bytes=2-", 10) == ByteRange{Kind::part, 2, 8});
  CHECK(parse_range("bytes=2-99", 10) == ByteRange{Kind::part, 2, 8});
  CHECK(parse_range("bytes=-3", 10) == ByteRange{Kind::part, 7, 3});
  CHECK(parse_range("bytes=-99", 10) == ByteRange{Kind::part, 0, 10});
  CHECK(parse_range("bytes=2-18446744073709551615", 10) == ByteRange{Kind::part, 2, 8});
  CHECK(parse_range("bytes=2-99999999999999999999999", 10) == ByteRange{Kind::part, 2, 8});
}

TEST_CASE("parse_range: what starts behind the end cannot be had", "[daemon][range]") {
  CHECK(parse_range("bytes=10-", 10).kind == Kind::unsatisfiable);
  CHECK(parse_range("bytes=18446744073709551615-", 10).kind == Kind::unsatisfiable);
  CHECK(parse_range("bytes=0-0", 0).kind == Kind::unsatisfiable);
  CHECK(parse_range("bytes=-0", 10).kind == Kind::unsatisfiable);
  CHECK(parse_range("bytes=-5", 0).kind == Kind::unsatisfiable);
}

TEST_CASE("parse_range: what is no single range means everything", "[daemon][range]") {
  for (const char* text : {"", "bytes", "bytes=", "bytes=-", "bytes=x-", "bytes=1", "bytes=4-2",
                           "bytes=0-1,4-5", "lines=0-1", "bytes= 0-1", "bytes=0-1x"}) {
    CHECK(parse_range(text, 10) == ByteRange{Kind::whole, 0, 10});
  }
}
