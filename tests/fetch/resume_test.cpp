// SPDX-License-Identifier: Apache-2.0
#include "fetch/resume.hpp"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <utility>

using namespace modeld::fetch;
using Kind = Verdict::Kind;

namespace {

Headers with(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Headers headers;
  for (const auto& [name, value] : fields)
    headers.add(name, value);
  return headers;
}

const Wanted k_rest{29, 100, 100, true, "\"v1\""};
const Wanted k_all{0, 100, 100, false, ""};

} // namespace

TEST_CASE("judge appends a 206 that is exactly the range asked for", "[fetch][resume][C02]") {
  CHECK(judge(k_rest, 206, with({{"Content-Range", "bytes 29-99/100"}, {"Content-Length", "71"}}))
            .kind == Kind::append);
  CHECK(judge(k_rest, 206, with({{"Content-Range", "bytes 29-99/*"}})).kind == Kind::append);
  CHECK(judge(k_rest, 206, with({{"Content-Range", "bytes 29-99/100"}, {"ETag", "\"v1\""}})).kind ==
        Kind::append);
}

TEST_CASE("judge refuses a 206 that is anything else", "[fetch][resume][C02][pitfall-7]") {
  const Headers bad[] = {
      with({}),
      with({{"Content-Range", "bytes 0-99/100"}}),
      with({{"Content-Range", "bytes 28-99/100"}}),
      with({{"Content-Range", "bytes 29-98/100"}}),
      with({{"Content-Range", "bytes 29-99/101"}}),
      with({{"Content-Range", "bytes */100"}}),
      with({{"Content-Range", "nonsense"}}),
      with({{"Content-Range", "bytes 29-99/100"}, {"Content-Length", "70"}}),
      with({{"Content-Range", "bytes 29-99/100"}, {"Content-Encoding", "gzip"}}),
      with({{"Content-Range", "bytes 29-99/100"}, {"ETag", "\"v2\""}}),
  };
  for (const Headers& headers : bad) {
    const Verdict verdict = judge(k_rest, 206, headers);
    CHECK(verdict.kind == Kind::refuse);
    CHECK_FALSE(verdict.why.empty());
  }
  CHECK(judge(k_all, 206, with({{"Content-Range", "bytes 0-99/100"}})).kind == Kind::append); // all
  CHECK(judge(k_all, 206, with({{"Content-Range", "bytes 0-9/100"}})).kind == Kind::refuse);
}

TEST_CASE("judge starts over when a range is answered by the whole file", "[fetch][resume][C02]") {
  CHECK(judge(k_rest, 200, with({{"Content-Length", "100"}})).kind == Kind::restart);
  CHECK(judge(k_rest, 200, with({})).kind == Kind::restart);
  CHECK(judge(k_rest, 200, with({{"Content-Length", "71"}})).kind == Kind::refuse);
}

TEST_CASE("judge compares every length with the listing, except of encoded bodies",
          "[fetch][resume][C07][pitfall-1]") {
  CHECK(judge(k_all, 200, with({{"Content-Length", "100"}})).kind == Kind::append);
  CHECK(judge(k_all, 200, with({})).kind == Kind::append);
  CHECK(judge(k_all, 200, with({{"Content-Length", "0"}})).kind == Kind::refuse);
  CHECK(judge(k_all, 200, with({{"Content-Length", "120"}})).kind == Kind::refuse);
  CHECK(judge(k_all, 200, with({{"Content-Length", "-1"}})).kind == Kind::refuse);
  CHECK(judge(k_all, 200, with({{"Content-Length", "57"}, {"Content-Encoding", "gzip"}})).kind ==
        Kind::append);
  CHECK(judge(k_all, 200, with({{"Content-Length", "5"}, {"Transfer-Encoding", "chunked"}})).kind ==
        Kind::append);
}

TEST_CASE("judge takes less than was asked for where it is worth a request", "[fetch][resume]") {
  const Wanted wanted{1000, 2'000'000, 3'000'000, true, ""};
  const auto verdict = [&](const char* range) {
    return judge(wanted, 206, with({{"Content-Range", range}}));
  };
  CHECK(verdict("bytes 1000-1999999/3000000").kind == Kind::append);
  const Verdict less = verdict("bytes 1000-1048575/3000000");
  CHECK(less.kind == Kind::append);
  CHECK(less.end == 1'048'576);
  CHECK(verdict("bytes 1000-1000/3000000").kind == Kind::refuse);
  CHECK(verdict("bytes 1000-2000000/3000000").kind == Kind::refuse);
  CHECK(verdict("bytes 1000-18446744073709551615/3000000").kind == Kind::refuse);
  CHECK(verdict("Bytes 1000-1999999/3000000").kind == Kind::append); // units have no case
}

TEST_CASE("judge takes a 416 for completeness only at the very end",
          "[fetch][resume][C01][pitfall-21]") {
  const Wanted at_end{100, 100, 100, true, ""};
  CHECK(judge(at_end, 416, with({{"Content-Range", "bytes */100"}})).kind == Kind::complete);
  CHECK(judge(at_end, 416, with({})).kind == Kind::refuse);
  CHECK(judge(k_rest, 416, with({{"Content-Range", "bytes */100"}})).kind == Kind::refuse);
  CHECK(judge(k_rest, 416, with({{"Content-Range", "bytes */29"}})).kind == Kind::refuse);
}

TEST_CASE("range_value is open at the end of the file only", "[fetch][resume][pitfall-29]") {
  CHECK(range_value(k_rest) == "bytes=29-");
  CHECK(range_value({0, 50, 100, true, ""}) == "bytes=0-49");
}

TEST_CASE("looks_like_page knows pages and spares files that are pages", "[fetch][resume][C10]") {
  CHECK(looks_like_page("x.gguf", "text/html; charset=utf-8", " <p>log in"));
  CHECK_FALSE(looks_like_page("x.gguf", "text/html", "<^\x81"));
  CHECK_FALSE(looks_like_page("x.gguf", "text/html", "GGUF")); // what the server calls the unknown
  CHECK(looks_like_page("x.gguf", "", "\xEF\xBB\xBF \n<!DOCTYPE HTML><html>"));
  CHECK(looks_like_page("config.json", "", "<html lang=en>"));
  CHECK_FALSE(looks_like_page("index.html", "text/html", "<html>"));
  CHECK_FALSE(looks_like_page("config.json", "application/json", "{}"));
  CHECK_FALSE(looks_like_page("x.gguf", "", ""));
}

TEST_CASE("looks_like_pointer knows the first line of an LFS pointer", "[fetch][resume][C09]") {
  CHECK(looks_like_pointer("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"));
  CHECK_FALSE(looks_like_pointer("version 1"));
}
