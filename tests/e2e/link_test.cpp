// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

struct Setup {
  TestHub hub;
  std::unique_ptr<PrivateDaemon> daemon;

  Setup() {
    hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
    hub.add_repo("org/other", {{"README.md", "small"}});
    daemon = std::make_unique<PrivateDaemon>(hub.endpoint());
  }
  fs::path place(const std::string& name) const { return daemon->dir() / name; }
};

bool same_file(const fs::path& a, const fs::path& b) {
  struct stat one {};
  struct stat two {};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &two) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

} // namespace

TEST_CASE("link pulls, builds and shows a model to each program, in one copy", "[e2e][link][E01]") {
  Setup s;
  const auto& daemon = *s.daemon;
  const std::string ref = "modeld/TinyVerse-4M:Q4_K_M";
  const Finished plain = daemon.ctl({"link", ref, "--to", "lmstudio=" + s.place("lms").string()});
  INFO(plain.err);
  REQUIRE(plain.status == 0);
  const auto shown = s.place("lms") / "modeld/TinyVerse-4M/TinyVerse-4M-Q4_K_M.gguf";
  CHECK(plain.out == shown.string() + "\n");
  CHECK_THAT(plain.err, Contains("no space is used")); // the choice is explained
  CHECK(file_sha256(shown) == expected_sha256("Q4_K_M"));
  const auto kept = daemon.ctl({"get", ref}).out;
  CHECK(same_file(shown, kept.substr(0, kept.size() - 1)));

  const Finished ollama =
      daemon.ctl({"link", ref, "--to", "ollama"}, {{"OLLAMA_MODELS", s.place("ollama").string()}});
  INFO(ollama.err);
  REQUIRE(ollama.status == 0);
  CHECK(ollama.out == "hf.co/modeld/TinyVerse-4M:Q4_K_M\n");
  CHECK(same_file(s.place("ollama") / ("blobs/sha256-" + expected_sha256("Q4_K_M")), shown));

  const Finished cache = daemon.ctl({"link", "modeld/TinyVerse-4M", "--to", "hf"},
                                    {{"HF_HUB_CACHE", s.place("hub").string()}});
  INFO(cache.err);
  REQUIRE(cache.status == 0);
  const fs::path snapshot(cache.out.substr(0, cache.out.size() - 1));
  CHECK(fs::exists(snapshot / "config.json"));
  CHECK(fs::is_symlink(snapshot / "config.json"));
  CHECK(read_file(s.place("hub") / "models--modeld--TinyVerse-4M/refs/main") ==
        snapshot.filename().string());
  CHECK(daemon.ctl({"fsck"}).status == 0);
  CHECK_THAT(daemon.ctl({"link", "--list"}).out,
             Contains("lmstudio") && Contains("ollama") && Contains("huggingface"));
}

TEST_CASE("link never writes over what it did not make, and unlink takes only what it made",
          "[e2e][link]") {
  Setup s;
  const auto& daemon = *s.daemon;
  const auto root = s.place("models");
  fs::create_directories(root);
  std::ofstream(root / "TinyVerse-4M-Q8_0.gguf") << "mine";
  const std::vector<std::string> link{
      "link", "modeld/TinyVerse-4M:Q8_0", "--to", "models-dir", "--root", root.string()};
  const Finished refused = daemon.ctl(link);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, Contains("TinyVerse-4M-Q8_0.gguf") && Contains("[conflict]"));
  CHECK(read_file(root / "TinyVerse-4M-Q8_0.gguf") == "mine");
  fs::rename(root / "TinyVerse-4M-Q8_0.gguf", root / "mine.gguf");
  REQUIRE(daemon.ctl(link).status == 0);
  REQUIRE(daemon.ctl(link).status == 0); // again is fine
  REQUIRE(daemon.ctl({"unlink", "modeld/TinyVerse-4M"}).status == 0);
  CHECK_FALSE(fs::exists(root / "TinyVerse-4M-Q8_0.gguf"));
  CHECK(read_file(root / "mine.gguf") == "mine");
  CHECK(daemon.ctl({"unlink", "modeld/TinyVerse-4M"}).status == 3);
  CHECK(daemon.ctl({"get", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
}

TEST_CASE("E07 removing a built file takes its links along, and no others", "[e2e][link][E07]") {
  Setup s;
  const auto& daemon = *s.daemon;
  const auto q8 = s.place("models") / "TinyVerse-4M-Q8_0.gguf";
  const auto q4 = s.place("models") / "TinyVerse-4M-Q4_K_M.gguf";
  const std::string to = "models-dir=" + s.place("models").string();
  REQUIRE(daemon.ctl({"get", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
  REQUIRE(daemon.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"}).status == 0);
  REQUIRE(daemon.ctl({"link", "modeld/TinyVerse-4M", "--to", to}).status == 0);
  CHECK(fs::exists(q8));
  REQUIRE(daemon.ctl({"rm", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
  CHECK(wait_until([&] { return !fs::exists(q8); }));
  CHECK(fs::exists(q4));
  CHECK(daemon.ctl({"fsck"}).status == 0);
  REQUIRE(daemon.ctl({"rm", "modeld/TinyVerse-4M"}).status == 0);
  CHECK_FALSE(fs::exists(q4));
}

TEST_CASE("link refuses wrong usage with words", "[e2e][link]") {
  Setup s;
  const auto& daemon = *s.daemon;
  CHECK(daemon.ctl({"link", "org/other"}).status == 2);
  CHECK_THAT(daemon.ctl({"link", "org/other", "--to", "vllm"}).err,
             Contains("known are huggingface, ollama"));
  CHECK(daemon.ctl({"link", "org/other", "--all", "--to", "ollama"}).status == 2);
  CHECK_THAT(daemon.ctl({"link", "org/other", "--to", daemon.root().string() + "/views"}).err,
             Contains("inside of the store"));
  const Finished none = daemon.ctl({"link", "org/other", "--to", "lmstudio=/tmp/x-modeld-none"});
  CHECK(none.status == 3);
  CHECK_THAT(none.err, Contains("no GGUF"));
  CHECK_FALSE(fs::exists("/tmp/x-modeld-none"));
  CHECK(daemon.ctl({"link", "org/absent", "--to", s.place("x").string() + "/"}).status == 3);
}

TEST_CASE("link --all shows what is here and what comes, and forgets what goes",
          "[e2e][link][standing]") {
  Setup s;
  auto& daemon = *s.daemon;
  REQUIRE(daemon.ctl({"pull", "org/other"}).status == 0);
  const std::string to = "hf=" + s.place("hub").string();
  const Finished all = daemon.ctl({"link", "--all", "--to", to});
  INFO(all.err);
  REQUIRE(all.status == 0);
  const auto other = s.place("hub") / "models--org--other";
  const auto tiny = s.place("hub") / "models--modeld--TinyVerse-4M";
  CHECK(fs::exists(other / "refs/main"));
  REQUIRE(daemon.ctl({"get", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
  REQUIRE(wait_until([&] { return fs::exists(tiny / "refs/main"); }));
  CHECK(wait_until([&] {
    for (const auto& entry : fs::recursive_directory_iterator(tiny / "snapshots")) {
      if (entry.path().filename() == "TinyVerse-4M-Q8_0.gguf") return true;
    }
    return false;
  }));

  SECTION("rm takes the links along") {
    REQUIRE(daemon.ctl({"rm", "org/other"}).status == 0);
    CHECK(wait_until([&] { return !fs::exists(other); }));
  }
  SECTION("a standing link keeps nothing from collection") {
    const auto plan = daemon.ctl_json({"gc", "--grace", "0s", "--size-target", "0"});
    CHECK(plan.at("plan").at("won").to_number<std::uint64_t>() > 9'000'000);
    CHECK_FALSE(fs::exists(other / "refs/main"));
    CHECK_FALSE(fs::exists(tiny / "refs/main"));
    CHECK(daemon.ctl({"fsck"}).status == 0);
  }
  SECTION("it survives a restart, and mends what was removed meanwhile") {
    daemon.stop();
    const auto blob = *fs::directory_iterator(other / "blobs");
    fs::remove(blob.path());
    daemon.start();
    CHECK(wait_until([&] { return fs::exists(blob.path()); }));
  }
  SECTION("unlink --all ends it") {
    REQUIRE(daemon.ctl({"unlink", "--all", "--to", to}).status == 0);
    CHECK_FALSE(fs::exists(other));
    CHECK_FALSE(fs::exists(tiny));
    s.hub.add_repo("org/late", {{"a", "b"}});
    REQUIRE(daemon.ctl({"pull", "org/late"}).status == 0);
    CHECK_FALSE(fs::exists(s.place("hub") / "models--org--late"));
    CHECK_THAT(daemon.ctl({"link", "--list"}).err, Contains("nothing is linked"));
  }
}

TEST_CASE("E02 link names the folder that keeps the reader out", "[e2e][link][E02]") {
  if (::getuid() != 0) return; // needs an account that is not the owner
  Setup s;
  const auto& daemon = *s.daemon;
  const auto closed = s.place("closed");
  fs::permissions(daemon.dir().path(), fs::perms(0755));
  fs::create_directories(closed);
  fs::permissions(closed, fs::perms::owner_all);
  const Finished refused = daemon.ctl({"link", "modeld/TinyVerse-4M:Q8_0", "--to",
                                       "models-dir=" + (closed / "in").string(), "--for", "65534"});
  CHECK(refused.status == 5);
  CHECK_THAT(refused.err,
             Contains("'" + closed.string() + "' has mode 0700") && Contains("[denied]"));
  CHECK_FALSE(fs::exists(closed / "in")); // nothing half made
  CHECK(s.hub.requests().empty());        // and nothing fetched for it
}

TEST_CASE("E12 rm says who uses a model, and takes it by force alone", "[e2e][rm][E12]") {
  Setup s;
  const auto& daemon = *s.daemon;
  REQUIRE(daemon.ctl({"pull", "org/other"}).status == 0);
  const auto path = daemon.ctl({"get", "org/other:README.md"}).out;
  std::ifstream held(path.substr(0, path.size() - 1)); // by this process
  const Finished refused = daemon.ctl({"rm", "org/other"});
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err,
             Contains("in use by") && Contains("process " + std::to_string(::getpid()) + " ("));
  CHECK(daemon.ctl({"rm", "--force", "org/other"}).status == 0);
  std::string text;
  std::getline(held, text);
  CHECK(text == "small");
}
