// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <fstream>

using namespace modeld::test;
using Catch::Contains;

namespace {

constexpr const char* k_token = "hf_abcdefghijklmnopqrstuvwxyz0123456789";

void add_private(TestHub& hub) {
  hub.add_repo("org/private", {{"README.md", "secret"}});
  hub.change([](Repositories& repositories) {
    repositories.find("org/private")->is_private = true;
    repositories.add_token(k_token, {"org/private"});
  });
}

} // namespace

TEST_CASE("the caller's own token opens a private repository, and is kept nowhere",
          "[e2e][users][rule-5]") {
  TestHub hub;
  add_private(hub);
  PrivateDaemon daemon(hub.endpoint());
  const Finished without = daemon.ctl({"pull", "org/private"});
  CHECK((without.status == 3 || without.status == 5));
  const Finished with = daemon.ctl({"pull", "org/private"}, {{"HF_TOKEN", k_token}});
  INFO(with.err);
  CHECK(with.status == 0);

  const auto file = daemon.dir() / "token";
  std::ofstream(file) << k_token << "\n";
  CHECK(daemon.ctl({"pull", "org/private"}, {{"HF_TOKEN_PATH", file.string()}}).status == 0);
  const Finished off =
      daemon.ctl({"pull", "org/private"},
                 {{"HF_TOKEN_PATH", file.string()}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}});
  CHECK(off.status != 0);

  const std::string token = k_token;
  CHECK(daemon.log().find(token) == std::string::npos);
  CHECK(daemon.ctl({"jobs", "--all", "--json"}).out.find(token) == std::string::npos);
  const Finished grep = run({"grep", "-rlF", token, daemon.root().string()});
  CHECK(grep.status == 1);
  CHECK(grep.out.empty());
}

TEST_CASE("a token that cannot stand in a header is refused without being shown",
          "[e2e][users][rule-5]") {
  TestHub hub;
  add_private(hub);
  PrivateDaemon daemon(hub.endpoint());
  const Finished got = daemon.ctl({"pull", "org/private"}, {{"HF_TOKEN", "hf_x\ny: z"}});
  CHECK(got.status == 2);
  CHECK_THAT(got.err, Contains("HF_TOKEN"));
  CHECK(got.err.find("y: z") == std::string::npos);
}
