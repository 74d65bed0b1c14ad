// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/private_daemon.hpp"
#include "tests/hub/test_hub.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

// Models that come and go without the Hub: imports, bundles, repairs, and an index made again.

using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

// Where nobody answers.
constexpr const char* k_no_hub = "http://127.0.0.1:9";

fs::path blob_of(const PrivateDaemon& daemon, const std::string& digest) {
  return daemon.root() / "blobs" / "sha256" / digest.substr(0, 2) / digest;
}

void overwrite(const fs::path& path, std::uint64_t offset, const std::string& bytes) {
  fs::permissions(path, fs::perms::owner_all);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file << bytes;
}

} // namespace

TEST_CASE("E13 a bundle carries a model to a machine without a network", "[e2e][bundle][E13]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon here(hub.endpoint());
  REQUIRE(here.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"}).status == 0);
  const auto file = here.dir() / "tiny.tar";
  const Finished exported = here.ctl({"export", "modeld/TinyVerse-4M", "-o", file.string()});
  INFO(exported.err);
  REQUIRE(exported.status == 0);
  CHECK(exported.out == file.string() + "\n");
  CHECK(here.ctl({"export", "modeld/TinyVerse-4M", "-o", file.string()}).status == 1);
  CHECK(here.ctl({"export", "modeld/TinyVerse-4M:Q6_K", "-o", "/tmp/x-modeld.tar"}).status == 3);

  // Tools that everybody has can list and prove it.
  const auto out = here.dir() / "out";
  fs::create_directories(out);
  CHECK_THAT(run({"tar", "-tf", file.string()}).out,
             Contains("SHA256SUMS") && Contains("files/config.json") &&
                 Contains("variants/TinyVerse-4M-Q4_K_M.gguf"));
  REQUIRE(run({"tar", "-xf", file.string(), "-C", out.string()}).status == 0);
  CHECK(run({"sh", "-c", "cd '" + out.string() + "' && sha256sum -c --quiet SHA256SUMS"}).status ==
        0);

  PrivateDaemon there(k_no_hub);
  const Finished imported = there.ctl({"import", file.string()});
  INFO(imported.err);
  REQUIRE(imported.status == 0);
  const Finished got = there.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  INFO(got.err);
  REQUIRE(got.status == 0);
  CHECK(file_sha256(got.out.substr(0, got.out.size() - 1)) == expected_sha256("Q4_K_M"));
  CHECK(there.ctl({"get", "modeld/TinyVerse-4M:Q8_0"}).status == 0); // the sources came along
  CHECK(there.ctl({"fsck", "--deep"}).status == 0);

  overwrite(file, fs::file_size(file) / 2, "damage");
  PrivateDaemon other(k_no_hub);
  CHECK(other.ctl({"import", file.string()}).status == 4);
  CHECK(other.ctl_json({"ls"}).at("snapshots").as_array().empty());
}

TEST_CASE("a bundle can be signed, and taken in only from those who are trusted",
          "[e2e][bundle][signature]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "text"}});
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  const auto at = [&daemon](const std::string& name) { return (daemon.dir() / name).string(); };
  REQUIRE(run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at("key")}).status == 0);
  REQUIRE(run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at("other")}).status == 0);
  std::ofstream(at("trusted")) << "team@example.org " << read_file(at("key.pub"));
  std::ofstream(at("others")) << "team@example.org " << read_file(at("other.pub"));
  const Finished out = daemon.ctl({"export", "org/name", "-o", at("b.tar"), "--sign", at("key")});
  INFO(out.err);
  REQUIRE(out.status == 0);
  const Finished in = daemon.ctl({"import", at("b.tar"), "--verify", at("trusted")});
  INFO(in.err);
  CHECK(in.status == 0);
  CHECK_THAT(in.err, Contains("signed by team@example.org"));
  CHECK(daemon.ctl({"import", at("b.tar"), "--verify", at("others")}).status == 4);
  CHECK(daemon.ctl({"import", at("b.tar"), "--verify", at("absent")}).status == 3);
  std::ofstream(at("b.tar"), std::ios::app) << "x";
  CHECK(daemon.ctl({"import", at("b.tar"), "--verify", at("trusted")}).status == 4);
  std::filesystem::remove(at("b.tar.sig"));
  CHECK(daemon.ctl({"import", at("b.tar"), "--verify", at("trusted")}).status == 3);
}

TEST_CASE("a bundle can be signed by minisign as well", "[e2e][bundle][signature]") {
  TestHub hub;
  hub.add_repo("org/name", {{"README.md", "text"}});
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"pull", "org/name"}).status == 0);
  const auto at = [&daemon](const std::string& name) { return (daemon.dir() / name).string(); };
  for (const char* name : {"key", "other"}) {
    REQUIRE(run({"minisign", "-G", "-W", "-p", at(name) + ".pub", "-s", at(name)}).status == 0);
  }
  const Finished out = daemon.ctl({"export", "org/name", "-o", at("b.tar"), "--sign", at("key")});
  INFO(out.err);
  REQUIRE(out.status == 0);
  CHECK(run({"minisign", "-V", "-p", at("key.pub"), "-m", at("b.tar")}).status == 0);
  const Finished in = daemon.ctl({"import", at("b.tar"), "--verify", at("key.pub")});
  INFO(in.err);
  CHECK(in.status == 0);
  CHECK_THAT(in.err, Contains("signed by " + at("key.pub")));
  const Finished other = daemon.ctl({"import", at("b.tar"), "--verify", at("other.pub")});
  CHECK(other.status == 4);
  CHECK_THAT(other.err, Contains("key id"));
  std::ofstream(at("b.tar"), std::ios::app) << "x";
  CHECK(daemon.ctl({"import", at("b.tar"), "--verify", at("key.pub")}).status == 4);
  std::filesystem::remove(at("b.tar.minisig"));
  CHECK(daemon.ctl({"import", at("b.tar"), "--verify", at("key.pub")}).status == 3);
}

TEST_CASE("import takes in a Hugging Face cache, an Ollama store and folders, each file once",
          "[e2e][import][E05]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon here(hub.endpoint());
  const auto cache = here.dir() / "hub";
  const auto ollama = here.dir() / "ollama";
  REQUIRE(here.ctl({"link", "modeld/TinyVerse-4M", "--to", "hf=" + cache.string()}).status == 0);
  REQUIRE(
      here.ctl({"link", "modeld/TinyVerse-4M:Q8_0", "--to", "ollama=" + ollama.string()}).status ==
      0);

  PrivateDaemon there(k_no_hub);
  const auto dry = there.ctl_json({"import", cache.string(), "--dry-run", "--assume-complete"});
  CHECK(dry.at("adopted").as_array().size() == 1);
  CHECK(there.ctl_json({"ls"}).at("snapshots").as_array().empty());
  const auto first = there.ctl_json({"import", cache.string(), "--assume-complete"});
  CHECK(first.at("adopted").at(0).at("listed").as_bool());
  CHECK(first.at("adopted").at(0).at("repo").as_string() == "modeld/TinyVerse-4M");
  const Finished built = there.ctl({"get", "modeld/TinyVerse-4M:Q4_K_M"});
  INFO(built.err);
  REQUIRE(built.status == 0);
  CHECK(file_sha256(built.out.substr(0, built.out.size() - 1)) == expected_sha256("Q4_K_M"));

  const auto second = there.ctl_json({"import", "--from", "ollama", ollama.string()});
  CHECK(second.at("adopted").at(0).at("listed").as_bool());
  const std::string repo(second.at("adopted").at(0).at("repo").as_string());
  const Finished shown = there.ctl({"show", repo});
  CHECK_THAT(shown.out, Contains(".gguf"));

  const auto folder = here.dir() / "my-model";
  fs::create_directories(folder);
  fs::copy(tiny_verse(), folder, fs::copy_options::recursive);
  const auto third = there.ctl_json({"import", folder.string()});
  CHECK(third.at("adopted").at(0).at("repo").as_string() == "local/my-model");
  CHECK(third.at("adopted").at(0).at("copied").to_number<int>() == 0); // all of it was here
  const Finished local = there.ctl({"get", "local/my-model:Q8_0"});
  INFO(local.err);
  CHECK(local.status == 0);
  CHECK(there.ctl({"fsck", "--deep"}).status == 0);
  CHECK(there.ctl({"import"}).status == 2);
  CHECK(there.ctl({"import", "/tmp/x-modeld-absent"}).status == 3);
}

TEST_CASE("repair fetches only the bytes that are wrong", "[e2e][repair][E08]") {
  TestHub hub;
  std::string weights(20'000'000, '\0');
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<char>(i * 2654435761U >> 13U);
  }
  hub.add_repo("org/big", {{"weights.bin", weights}, {"README.md", "text"}});
  PrivateDaemon daemon(hub.endpoint());
  const auto pulled = daemon.ctl_json({"get", "org/big:weights.bin"});
  REQUIRE(daemon.ctl({"pull", "org/big"}).status == 0);
  const std::string digest(pulled.at("variant").at("sha256").as_string());
  overwrite(blob_of(daemon, digest), 9'000'000, "damage");
  CHECK(daemon.ctl({"scrub"}).status == 4);
  const auto repaired = daemon.ctl_json({"repair", "org/big"});
  CHECK(repaired.at("failed").as_array().empty());
  REQUIRE(repaired.at("repaired").as_array().size() == 1);
  CHECK(repaired.at("repaired").at(0).at("how").as_string() == "ranges");
  CHECK(repaired.at("repaired").at(0).at("fetched").to_number<std::uint64_t>() == 4U << 20);
  CHECK(file_sha256(blob_of(daemon, digest)) == digest);
  CHECK(daemon.ctl({"fsck", "--deep"}).status == 0);

  // Without a scrub in between: the next use sees that the file was changed.
  overwrite(blob_of(daemon, digest), 0, "damage");
  CHECK(daemon.ctl({"get", "org/big:weights.bin"}).status != 0);
  CHECK(daemon.ctl({"repair"}).status == 0);
  CHECK(daemon.ctl({"get", "org/big:weights.bin"}).status == 0);
  CHECK(file_sha256(blob_of(daemon, digest)) == digest);
}

TEST_CASE("a built file that somebody changed is built again, and is the same",
          "[e2e][repair][E08]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"get", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
  const std::string digest = expected_sha256("Q8_0");
  SECTION("by the next get") {
    overwrite(blob_of(daemon, digest), 1'000'000, "damage");
    const Finished got = daemon.ctl({"get", "modeld/TinyVerse-4M:Q8_0"});
    INFO(got.err);
    CHECK(got.status == 0);
  }
  SECTION("by repair") {
    overwrite(blob_of(daemon, digest), 1'000'000, "damage");
    const auto repaired = daemon.ctl_json({"repair"});
    CHECK(repaired.at("repaired").at(0).at("how").as_string() == "built");
  }
  CHECK(file_sha256(blob_of(daemon, digest)) == digest);
  CHECK(daemon.ctl({"fsck", "--deep"}).status == 0);
}

TEST_CASE("fsck --rebuild makes an index equal to the old one, also of one that cannot be opened",
          "[e2e][fsck][rebuild]") {
  TestHub hub;
  hub.add_folder("modeld/TinyVerse-4M", tiny_verse());
  PrivateDaemon daemon(hub.endpoint());
  REQUIRE(daemon.ctl({"get", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
  REQUIRE(daemon.ctl({"pin", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
  const auto before = daemon.ctl_json({"ls"});
  const Finished rebuilt = daemon.ctl({"fsck", "--rebuild"});
  INFO(rebuilt.err);
  CHECK(rebuilt.status == 0);
  CHECK_THAT(rebuilt.out, Contains("equal to the old one row for row") && Contains("clean"));
  CHECK(daemon.ctl_json({"ls"}) == before);
  CHECK(daemon.ctl_json({"jobs", "--all"}).at("jobs").as_array().size() > 1);

  daemon.stop();
  for (const char* name : {"index.sqlite", "index.sqlite-wal"}) {
    std::ofstream(daemon.root() / name, std::ios::binary) << std::string(8192, 'x');
  }
  const Finished refused = run({MODELD_PROGRAM, "--root", daemon.root().string(), "--socket",
                                (daemon.dir() / "other.sock").string()});
  CHECK(refused.status == 4);
  CHECK_THAT(refused.err, Contains("--rebuild-index") && Contains("[corrupt]"));
  Process again({MODELD_PROGRAM, "--root", daemon.root().string(), "--socket", daemon.socket(),
                 "--rebuild-index"});
  REQUIRE(wait_until([&] { return daemon.ctl({"health"}).status == 0; }));
  CHECK(daemon.ctl({"get", "modeld/TinyVerse-4M:Q8_0"}).status == 0);
  CHECK(daemon.ctl({"fsck", "--deep"}).status == 0);
}

TEST_CASE("above the high-water mark a collection starts by itself", "[e2e][gc][high-water]") {
  TestHub hub;
  hub.add_repo("org/old", {{"a", std::string(3'000'000, 'a')}});
  hub.add_repo("org/new", {{"b", std::string(3'000'000, 'b')}});
  PrivateDaemon daemon(hub.endpoint(),
                       "[store]\nmin_free = 0\nreserve_file = 0\nhigh_water = \"4MiB\"\n");
  REQUIRE(daemon.ctl({"pull", "org/old"}).status == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100)); // times of use are whole seconds
  REQUIRE(daemon.ctl({"pull", "org/new"}).status == 0);
  CHECK(wait_until([&] { return daemon.ctl_json({"ls"}).at("snapshots").as_array().size() == 1; }));
  const auto left = daemon.ctl_json({"ls"}).at("snapshots").as_array();
  REQUIRE(left.size() == 1);
  CHECK(left[0].at("repo").as_string() == "org/new");
}
