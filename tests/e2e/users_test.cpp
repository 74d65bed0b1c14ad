// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <filesystem>
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

TEST_CASE("login keeps a token for its user alone, and logout forgets it", "[e2e][users][login]") {
  TestHub hub;
  add_private(hub);
  PrivateDaemon daemon(hub.endpoint());
  const std::string home = (daemon.dir() / "home").string();
  const std::string kept = home + "/.config/modeld/token";
  const Process::Environment user{{"HOME", home}, {"XDG_CONFIG_HOME", ""}, {"HF_TOKEN", ""}};
  const auto login = [&](const std::string& token, const std::string& more = "") {
    std::ofstream(daemon.dir() / "typed") << token << "\n";
    Process::Environment all = user;
    all["no_proxy"] = "*";
    Process process({"sh", "-c",
                     std::string(MODELCTL_PROGRAM) + " --socket '" + daemon.socket() + "' login " +
                         more + " < '" + (daemon.dir() / "typed").string() + "'"},
                    all);
    return process.wait(std::chrono::seconds(60)).value();
  };

  const Finished nobody = daemon.ctl({"whoami"}, user);
  CHECK(nobody.status == 3);
  CHECK_THAT(nobody.err, Contains("modelctl login"));

  const Finished wrong = login("hf_wrong");
  CHECK(wrong.status == 5);
  CHECK(wrong.err.find("hf_wrong") == std::string::npos);
  CHECK_FALSE(std::filesystem::exists(kept));

  const Finished good = login(k_token);
  INFO(good.err);
  REQUIRE(good.status == 0);
  CHECK_THAT(good.err, Contains("'tester'") && Contains(kept));
  CHECK((good.out + good.err).find(k_token) == std::string::npos);
  const auto perms = std::filesystem::status(kept).permissions();
  CHECK(perms == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  CHECK(std::filesystem::status(home + "/.config/modeld").permissions() ==
        std::filesystem::perms::owner_all);

  CHECK(daemon.ctl({"whoami"}, user).out == "tester\n");
  CHECK(daemon.ctl({"pull", "org/private"}, user).status == 0);
  CHECK(daemon.ctl({"pull", "org/private"}, {{"HOME", home + "/other"}}).status != 0);

  // One that others may read is not used.
  std::filesystem::permissions(kept, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const Finished open = daemon.ctl({"pull", "org/private"}, user);
  CHECK(open.status == 5);
  CHECK_THAT(open.err, Contains("0604") && Contains("chmod 600"));

  CHECK(daemon.ctl({"logout"}, user).status == 0);
  CHECK_FALSE(std::filesystem::exists(kept));
  CHECK(daemon.ctl({"logout"}, user).status == 0);
  CHECK(login("hf_unchecked", "--no-check").status == 0);
  CHECK(daemon.log().find(k_token) == std::string::npos);
}

TEST_CASE("login takes a token that hf keeps by name, but none that only hf renews",
          "[e2e][users][login]") {
  TestHub hub;
  add_private(hub);
  PrivateDaemon daemon(hub.endpoint());
  const std::string home = (daemon.dir() / "home").string();
  std::filesystem::create_directories(home + "/.cache/huggingface");
  std::ofstream(home + "/.cache/huggingface/stored_tokens")
      << "[work]\nhf_token = " << k_token << "\n\n[browser]\nhf_token = " << k_token
      << "\nexpires_at = 9900000000\n";
  const Process::Environment user{{"HOME", home},   {"XDG_CONFIG_HOME", ""},
                                  {"HF_TOKEN", ""}, {"XDG_CACHE_HOME", ""},
                                  {"HF_HOME", ""},  {"HF_TOKEN_PATH", ""}};
  const Finished none = daemon.ctl({"login", "--stored", "wrok"}, user);
  CHECK(none.status == 3);
  CHECK_THAT(none.err, Contains("'work'") && Contains("'browser'"));
  const Finished renewed = daemon.ctl({"login", "--stored", "browser"}, user);
  CHECK(renewed.status == 2);
  CHECK_THAT(renewed.err, Contains("hf auth switch"));
  CHECK_FALSE(std::filesystem::exists(home + "/.config/modeld/token"));
  const Finished good = daemon.ctl({"login", "--stored", "work"}, user);
  INFO(good.err);
  REQUIRE(good.status == 0);
  CHECK_THAT(good.err, Contains("'tester'"));
  CHECK(daemon.ctl({"pull", "org/private"}, user).status == 0);
}

TEST_CASE("the daemon's own token opens what its callers have none for, if its file is private",
          "[e2e][users][token-file]") {
  TestHub hub;
  add_private(hub);
  const TempDir dir;
  const auto file = dir / "token";
  std::ofstream(file) << k_token << "\n";
  PrivateDaemon daemon(hub.endpoint(),
                       "[store]\nmin_free = 0\nreserve_file = 0\n[hub]\ntoken_file = \"" +
                           file.string() + "\"\n");
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const Finished open = daemon.ctl({"pull", "org/private"});
  CHECK(open.status == 5);
  CHECK_THAT(open.err, Contains("0644") && Contains("chmod 600"));
  CHECK(hub.requests().empty());

  std::filesystem::permissions(file, std::filesystem::perms(0600));
  const Finished pulled = daemon.ctl({"pull", "org/private"});
  INFO(pulled.err);
  CHECK(pulled.status == 0);
  CHECK(daemon.log().find(k_token) == std::string::npos);
}

TEST_CASE("repair uses the token chain of a pull, also for single ranges",
          "[e2e][users][repair][rule-5]") {
  TestHub hub;
  std::string weights(9'000'000, '\0');
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<char>(i * 2654435761U >> 13U);
  }
  hub.add_repo("org/private", {{"weights.bin", weights}, {"README.md", "text"}});
  hub.change([](Repositories& repositories) {
    repositories.find("org/private")->is_private = true;
    repositories.add_token(k_token, {"org/private"});
  });
  const TempDir dir;
  const auto file = dir / "token";
  std::ofstream(file) << k_token << "\n";
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  PrivateDaemon daemon(hub.endpoint(),
                       "[store]\nmin_free = 0\nreserve_file = 0\n[hub]\ntoken_file = \"" +
                           file.string() + "\"\n");
  const auto damage = [&] {
    const auto shown = daemon.ctl_json({"show", "org/private"});
    std::string digest;
    for (const auto& one : shown.at("files").as_array()) {
      if (one.at("path").as_string() == "weights.bin") digest = one.at("sha256").as_string();
    }
    const auto blob = daemon.root() / "blobs/sha256" / digest.substr(0, 2) / digest;
    std::filesystem::permissions(blob, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    std::fstream out(blob, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(5'000'000);
    out << "damage";
  };
  REQUIRE(daemon.ctl({"pull", "org/private"}).status == 0);
  damage();
  const auto by_daemon = daemon.ctl_json({"repair", "org/private"});
  CHECK(by_daemon.at("repaired").at(0).at("how").as_string() == "ranges");

  std::filesystem::remove(file);
  damage();
  const Finished without = daemon.ctl({"repair", "org/private"});
  CHECK(without.status != 0);
  const auto by_caller = daemon.ctl({"--json", "repair", "org/private"}, {{"HF_TOKEN", k_token}});
  CHECK(by_caller.status == 0);
  CHECK_THAT(by_caller.out, Contains("\"ranges\""));
  CHECK(daemon.ctl({"fsck", "--deep"}).status == 0);
  CHECK(daemon.log().find(k_token) == std::string::npos);
}
