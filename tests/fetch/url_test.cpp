// SPDX-License-Identifier: Apache-2.0
#include "fetch/url.hpp"

#include <catch2/catch.hpp>

using modeld::fetch::encode_path;
using modeld::fetch::encode_segment;
using modeld::fetch::Url;

TEST_CASE("Url::origin spells out scheme, host and port", "[fetch][url][C04]") {
  CHECK(Url::parse("https://Hugging.example/x").value().origin() == "https://hugging.example:443");
  CHECK(Url::parse("http://h/").value().origin() == "http://h:80");
  CHECK(Url::parse("http://h:8080/").value().origin() == "http://h:8080");
  CHECK(Url::parse("http://[::1]:80/").value().origin() == "http://[::1]:80");
  CHECK(Url::parse("https://h:443/").value().origin() == Url::parse("https://h/").value().origin());
}

TEST_CASE("Url::join resolves each form of reference and keeps the query", "[fetch][url][C05]") {
  const Url base = Url::parse("https://h:1/a/b/c?x=1").value();
  CHECK(base.join("/api/y?z=%22q%22").value().text() == "https://h:1/api/y?z=%22q%22");
  CHECK(base.join("d").value().text() == "https://h:1/a/b/d");
  CHECK(base.join("?y=2").value().text() == "https://h:1/a/b/c?y=2");
  CHECK(base.join("//other/p").value().text() == "https://other/p");
  CHECK(base.join("http://other/p#part").value().text() == "http://other/p");
}

TEST_CASE("Url::join refuses other schemes, user information and nonsense", "[fetch][url]") {
  const Url base = Url::parse("https://h/").value();
  for (const char* bad : {"file:///etc/passwd", "ftp://h/x", "https://user:pass@h/x",
                          "https://user@h/", "//user@h/x", "https://h:99999/"}) {
    INFO(bad);
    CHECK_FALSE(base.join(bad));
  }
  CHECK_FALSE(Url::parse("h/x"));
  CHECK_FALSE(base.join(std::string(20'000, 'a')));
  CHECK(base.join("/a@b/c").value().text() == "https://h/a@b/c");
}

TEST_CASE("Url::redacted and errors hold no query", "[fetch][url][C04]") {
  const Url url = Url::parse("https://cdn/x?Signature=secret").value();
  CHECK(url.redacted() == "https://cdn/x?...");
  const auto bad = url.join("ftp://cdn/x?Signature=secret");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().message.find("secret") == std::string::npos);
}

TEST_CASE("encode_path encodes each part of a name once", "[fetch][url][C20]") {
  CHECK(encode_path("a b/C?.json") == "a%20b/C%3F.json");
  CHECK(encode_path("x#1.gguf") == "x%231.gguf");
  CHECK(encode_path("50%.gguf") == "50%25.gguf");
  CHECK(encode_path("p+q.gguf") == "p%2Bq.gguf");
  CHECK(encode_path("e\xCC\x81.txt") == "e%CC%81.txt");
  CHECK(encode_path("it's \"q\" [1]@x~-_.") == "it%27s%20%22q%22%20%5B1%5D%40x~-_.");
  CHECK(encode_segment("refs/pr/1") == "refs%2Fpr%2F1");
}
