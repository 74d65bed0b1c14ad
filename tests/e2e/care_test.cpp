// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace modeld::test;
using Catch::Contains;

TEST_CASE("gc frees what was removed, and says why the rest stays", "[e2e][gc]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  hub.add_repo("org/other", {{"README.md", "stays"}});
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"}).status == 0);
  REQUIRE(daemon.ctl({"pull", "org/other"}).status == 0);
  REQUIRE(daemon.ctl({"pin", "org/other"}).status == 0);
  REQUIRE(daemon.ctl({"rm", "modeld/TinyVerse-4M"}).status == 0);

  const Finished plan = daemon.ctl({"gc", "--dry-run", "--all", "--grace", "0s"});
  INFO(plan.err);
  CHECK(plan.status == 0);
  CHECK_THAT(plan.out, Contains("goes") && Contains("unnamed") && Contains("pinned") &&
                           Contains("would be freed"));
  const auto done = daemon.ctl_json({"gc", "--grace", "0s"});
  CHECK(done.at("plan").at("won").to_number<std::uint64_t>() > 9'000'000);
  CHECK(daemon.ctl_json({"gc", "--grace", "0s"}).at("plan").at("won").to_number<int>() == 0);
  CHECK(daemon.ctl({"get", "org/other:README.md"}).status == 0);
  CHECK(daemon.ctl({"gc", "--unused-for", "soon"}).status == 2);
}

TEST_CASE("fsck and scrub find a blob that somebody changed", "[e2e][fsck]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "as it was"}});
  PrivateDaemon daemon(hub.endpoint());
  const auto shown = daemon.ctl_json({"get", "org/name:README.md"});
  CHECK(daemon.ctl({"fsck"}).status == 0);
  CHECK(daemon.ctl({"scrub"}).status == 0);
  const std::string digest(shown.at("variant").at("sha256").as_string());
  const auto blob = daemon.root() / "blobs" / "sha256" / digest.substr(0, 2) / digest;
  std::filesystem::permissions(blob, std::filesystem::perms::owner_all);
  std::ofstream(blob) << "as it IS!";
  const Finished found = daemon.ctl({"scrub"});
  CHECK(found.status == 4);
  CHECK_THAT(found.out, Contains(digest) && Contains("1 damaged"));
}
