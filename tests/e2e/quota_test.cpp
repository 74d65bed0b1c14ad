// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>

using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

constexpr unsigned k_alice = 12001;
constexpr unsigned k_bob = 12002;
constexpr unsigned k_carol = 12003;

std::uint64_t used_by(const boost::json::object& usage, unsigned uid) {
  for (const auto& user : usage.at("users").as_array()) {
    if (user.at("uid").to_number<unsigned>() == uid)
      return user.at("used").to_number<std::uint64_t>();
  }
  return 0;
}

boost::json::object parse(const Finished& finished) {
  INFO(finished.err);
  return boost::json::parse(finished.out).as_object();
}

} // namespace

TEST_CASE("each user has a quota, by default or by exception, and only what they brought counts",
          "[e2e][quota][users]") {
  if (::getuid() != 0) return; // needs several accounts
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  hub.add_repo("org/five", {{"a", "12345"}});
  hub.add_repo("org/six", {{"b", "123456"}});
  const PrivateDaemon daemon(hub.endpoint(),
                             "[store]\nmin_free = 0\nreserve_file = 0\nuser_quota = \"10MiB\"\n"
                             "user_quotas = \"0=0 12003=5\"\n");
  fs::permissions(daemon.dir().path(), fs::perms(0755));

  const Finished pulled = daemon.shell_as(k_alice, "$ctl pull modeld/TinyVerse-4M");
  INFO(pulled.err);
  REQUIRE(pulled.status == 0);
  const auto usage = parse(daemon.shell_as(k_alice, "$ctl --json usage"));
  const std::uint64_t sources = used_by(usage, k_alice);
  CHECK(sources > 7'000'000);
  CHECK(usage.at("users").as_array().size() == 1); // nobody sees the others

  const Finished refused = daemon.shell_as(k_alice, "$ctl get modeld/TinyVerse-4M:Q8_0");
  CHECK(refused.status == 6);
  CHECK_THAT(refused.err, Contains("user 12001") && Contains("quota of 10485760 bytes") &&
                              Contains(std::to_string(sources) + " are used") &&
                              Contains("needed") && Contains("modelctl usage") &&
                              Contains("[no_space]"));
  const auto error =
      parse(daemon.shell_as(k_alice, "$ctl --json get modeld/TinyVerse-4M:Q8_0")).at("error");
  CHECK(error.at("details").at("used").as_string() == std::to_string(sources));
  CHECK(error.at("details").at("quota").as_string() == "10485760");

  // What is here costs the next user nothing: only what is new counts.
  const Finished built = daemon.shell_as(k_bob, "$ctl get modeld/TinyVerse-4M:Q8_0");
  INFO(built.err);
  CHECK(built.status == 0);
  const auto all = daemon.ctl_json({"usage"});
  CHECK(used_by(all, k_alice) == sources);
  CHECK(used_by(all, k_bob) > 3'000'000);
  CHECK(used_by(all, k_bob) < 6'000'000);
  CHECK(daemon.shell_as(k_alice, "$ctl get modeld/TinyVerse-4M:Q8_0").status == 0);
  CHECK_THAT(daemon.ctl({"usage"}).out, Contains("12001") && Contains("12002") &&
                                            Contains("QUOTA") && Contains("10.0 MiB") &&
                                            Contains("none"));

  CHECK(daemon.shell_as(k_carol, "$ctl pull org/six").status == 6);
  CHECK(daemon.shell_as(k_carol, "$ctl pull org/five").status == 0);
  const auto requests = hub.requests().size();
  const auto jobs = daemon.ctl_json({"jobs", "--all"}).at("jobs").as_array().size();
  const Finished full = daemon.shell_as(k_carol, "$ctl pull org/six");
  CHECK(full.status == 6); // before a job starts
  CHECK_THAT(full.err, Contains("0 of the quota of 5 bytes are left, 5 are used"));
  CHECK(hub.requests().size() == requests);
  CHECK(daemon.ctl_json({"jobs", "--all"}).at("jobs").as_array().size() == jobs);
  CHECK(daemon.ctl({"pull", "org/six"}).status == 0); // root has none here

  CHECK(daemon.shell_as(k_carol, "$ctl rm org/five && $ctl pull org/six").status == 0);
  CHECK(used_by(daemon.ctl_json({"usage"}), k_carol) == 0); // root brought it
  CHECK(daemon.ctl({"fsck", "--deep"}).status == 0);
}

TEST_CASE("a quota that does not read is refused at the start, with its entry", "[e2e][quota]") {
  TempDir dir;
  const auto start = [&](const std::string& quotas) {
    return run({"sh", "-c",
                "printf '[store]\\nmin_free = 0\\nuser_quotas = \"" + quotas + "\"\\n' > '" +
                    (dir / "c.toml").string() + "'; exec " + MODELD_PROGRAM + " --root '" +
                    (dir / "root").string() + "' --socket '" + (dir / "s").string() +
                    "' --config '" + (dir / "c.toml").string() + "'"});
  };
  const Finished unknown = start("nobody-has-this-name=1GiB");
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, Contains("store.user_quotas") && Contains("nobody-has-this-name"));
  CHECK_THAT(start("root").err, Contains("USER=SIZE"));
  CHECK_THAT(start("root=many").err, Contains("many"));
  CHECK_THAT(start("root=1 0=2").err, Contains("has one already"));
}

TEST_CASE("E04 what a cancelled pull left is shown, and one command frees it", "[e2e][E04][gc]") {
  TestHub hub;
  hub.add_repo("org/big", {{"big.bin", std::string(24U << 20, 'x')}});
  const PrivateDaemon daemon(
      hub.endpoint(), "[store]\nmin_free = 0\nreserve_file = 0\n[hub]\nbandwidth = \"2MiB\"\n");
  const auto on_disk = [&](const char* what) {
    return daemon.ctl_json({"usage"}).at("disk").at(what).to_number<std::uint64_t>();
  };
  Process pull = daemon.start_ctl({"pull", "org/big"});
  REQUIRE(wait_until([&] { return on_disk("unfinished") > 1'000'000; }));
  const auto running = daemon.ctl_json({"jobs"});
  for (const auto& job : running.at("jobs").as_array()) {
    REQUIRE(daemon.ctl({"cancel", std::string(job.at("id").as_string())}).status == 0);
  }
  REQUIRE(pull.wait(std::chrono::seconds(20)));
  const auto left = on_disk("unfinished");
  CHECK(left > 1'000'000);
  CHECK_THAT(daemon.ctl({"usage"}).out, Contains("unfinished"));
  CHECK_THAT(daemon.ctl({"gc", "--dry-run", "--all"}).out,
             Contains("partial") && Contains("young"));
  const auto plan = daemon.ctl_json({"gc", "--dry-run", "--grace", "0s"}).at("plan");
  CHECK(plan.at("won").to_number<std::uint64_t>() > 1'000'000);
  CHECK(on_disk("unfinished") == left); // a dry run
  CHECK(daemon.ctl({"gc", "--grace", "0s"}).status == 0);
  CHECK(on_disk("unfinished") == 0);
  CHECK(on_disk("unnamed") == 0);
}

TEST_CASE("another user's link is refused with a way, and that way works", "[e2e][link][users]") {
  if (::getuid() != 0) return; // needs several accounts
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  hub.add_repo("org/part", {{"a b", "text"}, {"sub/it's", "more"}});
  const PrivateDaemon daemon(hub.endpoint());
  fs::permissions(daemon.dir().path(), fs::perms(0755));
  const auto home = daemon.dir() / ("home" + std::to_string(k_alice));
  fs::create_directory(home);
  REQUIRE(::chown(home.c_str(), k_alice, k_alice) == 0);
  const std::string link = "$ctl link modeld/TinyVerse-4M:Q8_0 --to models-dir=$HOME/models";
  const Finished refused = daemon.shell_as(k_alice, link);
  CHECK(refused.status == 5);
  CHECK_THAT(refused.err, Contains("user 12001 may not") && Contains("--print | sh") &&
                              Contains("'root'") && Contains("[denied]"));
  CHECK(fs::is_empty(home));
  const Finished done = daemon.shell_as(k_alice, link + " --print | sh");
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK(file_sha256(home / "models/TinyVerse-4M-Q8_0.gguf") == expected_sha256("Q8_0"));
  CHECK(daemon.shell_as(k_alice, link + " --print | sh").status != 0); // nothing is written over

  const std::string ollama = "$ctl link modeld/TinyVerse-4M:Q8_0 --to ollama=$HOME/ollama";
  CHECK(daemon.shell_as(k_alice, ollama + " --print --form copy | sh").status == 0);
  CHECK(fs::exists(home / "ollama/manifests/hf.co/modeld/TinyVerse-4M/Q8_0"));
  REQUIRE(daemon.ctl({"pull", "--include", "sub/*", "org/part"}).status == 0);
  const std::string part = "link org/part --to hf=$HOME/hub --print";
  const auto planned = parse(daemon.shell_as(k_alice, "$ctl --json " + part));
  CHECK(planned.at("partial").as_bool());
  CHECK(planned.at("absent").to_number<int>() == 1);
  CHECK(planned.at("absent_bytes").to_number<int>() == 4);
  const Finished script = daemon.shell_as(k_alice, "$ctl " + part);
  CHECK_THAT(script.err, Contains("1 file (4 B) of it is not here; modelctl pull org/part@"));
  CHECK(daemon.shell_as(k_alice, "$ctl " + part + " | sh").status == 0);
  const auto shown = home / "hub/models--org--part";
  CHECK(read_file(shown / "snapshots" / read_file(shown / "refs/main") / "sub/it's") == "more");
  CHECK(daemon.shell_as(k_alice, "$ctl link --all --to hf=$HOME/hub --print").status == 2);

  const Finished import = daemon.shell_as(k_alice, "$ctl import $HOME/models");
  CHECK(import.status == 5);
  CHECK_THAT(import.err, Contains("user 12001 may not") && Contains("a daemon of your own"));
  CHECK_THAT(daemon.ctl({"link", "--list"}).err, Contains("nothing is linked"));
}

TEST_CASE("a private store in one user's home does everything without root", "[e2e][users][home]") {
  if (::getuid() != 0) return; // to become somebody else
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  TempDir dir;
  fs::permissions(dir.path(), fs::perms(0755));
  const auto home = dir / "home";
  fs::create_directory(home);
  fs::permissions(home, fs::perms(0700));
  REQUIRE(::chown(home.c_str(), k_alice, k_alice) == 0);
  const std::string script = R"sh(
    set -e
    unset XDG_DATA_HOME XDG_CONFIG_HOME XDG_CACHE_HOME
    mkdir -m 0700 "$HOME/run"; export XDG_RUNTIME_DIR="$HOME/run"
    mkdir -p "$HOME/.config/modeld"
    printf '[store]\nmin_free = 0\nreserve_file = 0\n' > "$HOME/.config/modeld/modeld.toml"
    "$modeld" & daemon=$!
    trap 'kill $daemon; wait $daemon' EXIT
    for i in $(seq 200); do "$ctl" health >/dev/null 2>&1 && break; sleep 0.1; done
    "$ctl" get modeld/TinyVerse-4M:Q8_0
    "$ctl" pull modeld/TinyVerse-4M
    "$ctl" link modeld/TinyVerse-4M:Q8_0 --to lmstudio="$HOME/lms"
    "$ctl" link --all --to hf="$HOME/hub"
    "$ctl" import "$HOME/lms"
    "$ctl" export modeld/TinyVerse-4M:Q8_0 -o "$HOME/x.tar"
    "$ctl" import "$HOME/x.tar"
    "$ctl" pin modeld/TinyVerse-4M:Q8_0
    "$ctl" scrub; "$ctl" repair; "$ctl" gc --grace 0s; "$ctl" fsck --deep; "$ctl" fsck --rebuild
    "$ctl" unlink --all
    "$ctl" usage
  )sh";
  const Finished done = run({"setpriv", "--reuid", std::to_string(k_alice), "--regid",
                             std::to_string(k_alice), "--clear-groups", "sh", "-c", script},
                            {{"HOME", home.string()},
                             {"ctl", MODELCTL_PROGRAM},
                             {"modeld", MODELD_PROGRAM},
                             {"HF_ENDPOINT", hub.endpoint()},
                             {"MODELD_SOCKET", ""},
                             {"MODELD_ROOT", ""},
                             {"MODELD_CONFIG", ""},
                             {"HF_TOKEN", ""},
                             {"no_proxy", "*"}});
  INFO(done.out);
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("equal to the old one row for row") && Contains("on the disk"));
  CHECK(fs::exists(home / ".local/share/modeld/modeld.id"));
}
