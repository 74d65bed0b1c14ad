// SPDX-License-Identifier: Apache-2.0
#include "daemon/mirror_path.hpp"

#include <catch2/catch.hpp>

using modeld::daemon::MirrorPath;
using modeld::daemon::parse_mirror_path;
using Kind = MirrorPath::Kind;

namespace {

void check(std::string_view raw, Kind kind, const std::string& repo,
           const std::vector<std::string>& rest) {
  INFO(raw);
  const auto path = parse_mirror_path(raw);
  REQUIRE(path);
  CHECK(path->kind == kind);
  CHECK(path->repo == repo);
  CHECK(path->rest == rest);
}

} // namespace

TEST_CASE("parse_mirror_path finds repository, marker and the parts behind", "[daemon][mirror]") {
  check("/api/models/gpt2", Kind::info, "gpt2", {});
  check("/api/models/org/name", Kind::info, "org/name", {});
  check("/api/models/org/name/revision/main", Kind::info, "org/name", {"main"});
  check("/api/models/gpt2/tree/main/sub%2Fdir", Kind::tree, "gpt2", {"main", "sub/dir"});
  check("/api/models/org/name/paths-info/main", Kind::paths_info, "org/name", {"main"});
  check("/api/models/org/name/refs", Kind::refs, "org/name", {});
  check("/api/whoami-v2", Kind::whoami, "", {});
  check("/gpt2/resolve/main/config.json", Kind::resolve, "gpt2", {"main", "config.json"});
  check("/org/name/raw/refs%2Fpr%2F1/a/b", Kind::raw, "org/name", {"refs/pr/1", "a", "b"});
  // A folder of that name is no marker, and an encoded slash separates nothing.
  check("/org/name/resolve/main/resolve/x", Kind::resolve, "org/name", {"main", "resolve", "x"});
  check("/org%2Fname/resolve/main/x", Kind::resolve, "org/name", {"main", "x"});
}

TEST_CASE("parse_mirror_path: what is reserved or unknown is nothing", "[daemon][mirror]") {
  for (const char* raw :
       {"", "/", "x", "/org/name", "/datasets/org/name/resolve/main/x", "/api/datasets/org/name",
        "/v2/org/name/manifests/main", "/a/b/c/d", "/api", "/api/models", "/api/models/a/b/c"}) {
    INFO(raw);
    const auto path = parse_mirror_path(raw);
    REQUIRE(path);
    CHECK(path->kind == Kind::other);
  }
  CHECK_FALSE(parse_mirror_path("/org/name/resolve/main/%zz"));
  CHECK_FALSE(parse_mirror_path("/org/name/resolve/main/%00"));
}
