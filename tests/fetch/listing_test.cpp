// SPDX-License-Identifier: Apache-2.0
#include "fetch/listing.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <string>

using namespace modeld;
using namespace modeld::fetch;

namespace {

const std::string k_oid(40, 'a');

std::string page_of(const std::string& path) {
  return boost::json::serialize(
      boost::json::array{{{"type", "file"}, {"oid", k_oid}, {"size", 3}, {"path", path}}});
}

} // namespace

TEST_CASE("append_tree_page reads files, LFS objects and leaves folders out", "[fetch][listing]") {
  std::vector<ListedFile> files;
  const std::string page = fmt::format(
      R"([{{"type":"directory","oid":"{0}","size":0,"path":"d"}},
          {{"type":"file","oid":"{0}","size":3,"path":"d/small.json","lfs":null}},
          {{"type":"file","oid":"{0}","size":9,"path":"big.bin","xetHash":"{2}",
            "lfs":{{"oid":"{1}","size":9,"pointerSize":127}}}}])",
      k_oid, std::string(64, 'b'), std::string(64, '*'));
  REQUIRE(append_tree_page(page, files));
  REQUIRE(files.size() == 2);
  CHECK(files[0].path == "d/small.json");
  CHECK_FALSE(files[0].sha256);
  CHECK(files[1].sha256->hex() == std::string(64, 'b')); // pitfall 20: xetHash plays no part
}

TEST_CASE("append_tree_page refuses names that attack a file system",
          "[fetch][listing][C13][pitfall-15]") {
  for (const std::string& path :
       {std::string("../../x"), std::string("/x"), std::string("a/..\\..\\x"),
        std::string("\\\\h\\s\\x"), std::string("C:x"), std::string("c:/windows/x"),
        std::string("a//b"), std::string("a/"), std::string("."), std::string("a/./b"),
        std::string(""), std::string("nul\0here", 8), std::string("a/") + std::string(300, 'n'),
        std::string("esc\x1b[2J")}) {
    INFO(path);
    std::vector<ListedFile> files;
    const auto read = append_tree_page(page_of(path), files);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == Errc::malformed);
    CHECK(read.error().message.find('\x1b') == std::string::npos);
    CHECK(read.error().message.find('\0') == std::string::npos);
  }
}

TEST_CASE("append_tree_page keeps odd names byte for byte", "[fetch][listing][C20][pitfall-16]") {
  for (const char* path : {"a b/C?.json", "x#1.gguf", "50%.gguf", "p+q.gguf", "e\xCC\x81.txt",
                           "\xC3\xA9.txt", "it's \"q\" [1]@x"}) {
    std::vector<ListedFile> files;
    REQUIRE(append_tree_page(page_of(path), files));
    CHECK(files[0].path == path);
  }
}

TEST_CASE("append_tree_page refuses each break of the format", "[fetch][listing]") {
  std::vector<ListedFile> files;
  for (
      const char* bad :
      {"", "{}", "[1]", "[{}]", R"([{"type":"link"}])", R"([{"type":"file","path":"x","size":1}])",
       R"([{"type":"file","path":"x","size":-1,"oid":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}])",
       R"([{"type":"file","path":"x","size":1.5,"oid":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}])",
       R"([{"type":"file","path":"x","size":1,"oid":"xyz"}])",
       R"([{"type":"file","path":"x","size":18446744073709551615,"oid":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}])",
       R"([{"type":"file","path":"x","size":1,"oid":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","lfs":{"oid":"short","size":1}}])",
       R"([{"type":"file","path":"x","size":1,"oid":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","lfs":7}])"}) {
    INFO(bad);
    CHECK_FALSE(append_tree_page(bad, files));
  }
  const std::string good = page_of("file.json");
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    CHECK_FALSE(append_tree_page(good.substr(0, cut), files));
  }
}

TEST_CASE("finish_listing refuses a path that comes twice or is a folder too",
          "[fetch][listing][pitfall-15]") {
  const auto listing = [](std::initializer_list<const char*> paths) {
    std::vector<ListedFile> files;
    for (const char* path : paths)
      files.push_back({path, 0, {}, {}});
    return finish_listing(files).has_value();
  };
  CHECK(listing({"b", "a", "a-b", "ab/c"}));
  CHECK(listing({"A.txt", "a.txt"})); // differ in case only: both kept
  CHECK_FALSE(listing({"a", "b", "a"}));
  CHECK_FALSE(listing({"a", "a-b", "a/c"}));
  CHECK_FALSE(listing({"x/y/z", "x/y"}));
}

TEST_CASE("parse_repo_info wants a full commit id", "[fetch][listing][pitfall-34]") {
  const auto info = [](const std::string& sha) {
    return parse_repo_info(
        fmt::format(R"({{"id":"org/name","sha":"{}","gated":"manual","private":true}})", sha));
  };
  const auto good = info(k_oid);
  REQUIRE(good);
  CHECK(good->gated);
  CHECK(good->is_private);
  CHECK_FALSE(info("main"));
  CHECK_FALSE(info(std::string(64, 'a')));
  CHECK_FALSE(info(std::string(40, 'A')));
  CHECK_FALSE(parse_repo_info(R"({"sha":"x"})"));
  CHECK_FALSE(parse_repo_info("<html>"));
}
