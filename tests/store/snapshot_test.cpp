// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "store/layout.hpp"
#include "tests/store/fixture.hpp"

#include <sys/stat.h>

#include <algorithm>

using namespace modeld;
using namespace modeld::test;
namespace fs = std::filesystem;

namespace {

const Files k_files{{"config.json", "{}"}, {"sub/a.bin", "aaa"}, {"weights", "wwww"}};

ino_t inode(const fs::path& path) {
  struct stat info {};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

} // namespace

TEST_CASE("Store::publish_snapshot lists the snapshot and shows it as a folder",
          "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto snapshot = snapshot_of("org/name", '1', k_files);
  REQUIRE(pull(*store, snapshot, k_files));
  CHECK(**store->find_snapshot(snapshot.repo, snapshot.commit) == snapshot);
  const auto folder = store->snapshot_folder(snapshot.repo, snapshot.commit);
  CHECK(folder == dir / ("root/views/org/name/" + std::string(40, '1')));
  CHECK(read_file(folder / "sub/a.bin") == "aaa");
  CHECK(inode(folder / "weights") == inode(store->blob_path(sha("wwww"))));
  check_invariants(*store);
}

TEST_CASE("Store::publish_snapshot survives a restart", "[store][snapshot]") {
  TempDir dir;
  const auto snapshot = snapshot_of("org/name", '1', k_files);
  {
    const auto store = open_store(dir / "root");
    REQUIRE(pull(*store, snapshot, k_files));
  }
  const auto store = open_store(dir / "root");
  CHECK(store->list_snapshots()->size() == 1);
  check_invariants(*store);
}

TEST_CASE("Store::publish_snapshot refuses a snapshot with a blob missing", "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto snapshot = snapshot_of("org/name", '1', k_files);
  REQUIRE(ingest(*store, "{}"));
  const auto published = store->publish_snapshot(snapshot);
  REQUIRE_FALSE(published);
  CHECK(published.error().code == Errc::not_found);
  CHECK(published.error().message.find("sub/a.bin") != std::string::npos);
  CHECK(store->list_snapshots()->empty());
  CHECK_FALSE(fs::exists(store->snapshot_folder(snapshot.repo, snapshot.commit)));
}

TEST_CASE("Store::publish_snapshot refuses paths that leave the folder", "[store][snapshot][C13]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  for (const char* path : {"../evil", "/etc/passwd", "a/../../b", "a//b", "."}) {
    INFO(path);
    const auto snapshot = snapshot_of("org/name", '1', {{path, "x"}});
    REQUIRE(ingest(*store, "x"));
    CHECK(store->publish_snapshot(snapshot).error().code == Errc::invalid_argument);
  }
}

TEST_CASE("Store::publish_snapshot refuses a name that is a file and a folder",
          "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const Files files{{"a", "x"}, {"a/b", "y"}};
  CHECK(pull(*store, snapshot_of("org/name", '1', files), files).error().code == Errc::malformed);
}

TEST_CASE("Store::publish_snapshot refuses other files under a known commit", "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot_of("org/name", '1', k_files), k_files));
  const Files other{{"config.json", "[]"}};
  CHECK(pull(*store, snapshot_of("org/name", '1', other), other).error().code == Errc::conflict);
}

namespace {

/// The snapshot with some of its files absent.
Snapshot without(Snapshot snapshot, const std::vector<std::string>& paths) {
  std::erase_if(snapshot.files, [&](const SnapshotFile& file) {
    if (std::find(paths.begin(), paths.end(), file.path) == paths.end()) return false;
    snapshot.absent.push_back({file.path, file.size, file.git_oid, std::nullopt});
    return true;
  });
  return snapshot;
}

} // namespace

TEST_CASE("Store::publish_snapshot keeps a part, and adds the rest when it comes",
          "[store][snapshot]") {
  TempDir dir;
  const auto whole = snapshot_of("org/name", '1', k_files);
  const auto part = without(whole, {"sub/a.bin", "weights"});
  {
    const auto store = open_store(dir / "root");
    REQUIRE(pull(*store, part, {{"config.json", "{}"}}));
    CHECK(**store->find_snapshot(whole.repo, whole.commit) == part);
    const auto info = store->list_snapshots()->front();
    CHECK(info.files == 1);
    CHECK(info.absent == 2);
    CHECK(info.absent_bytes == 7);
    CHECK_FALSE(fs::exists(store->snapshot_folder(whole.repo, whole.commit) / "weights"));
    REQUIRE(store->put_pin({"keep", whole.repo, whole.commit, {}, 0, 0}));
    check_invariants(*store);
  }
  const auto store = open_store(dir / "root");
  CHECK(**store->find_snapshot(whole.repo, whole.commit) == part);
  REQUIRE(
      pull(*store, without(whole, {"sub/a.bin"}), {{"config.json", "{}"}, {"weights", "wwww"}}));
  CHECK(**store->find_snapshot(whole.repo, whole.commit) == without(whole, {"sub/a.bin"}));
  check_invariants(*store);
  // Less than what is here takes nothing away.
  REQUIRE(store->publish_snapshot(part));
  CHECK(**store->find_snapshot(whole.repo, whole.commit) == without(whole, {"sub/a.bin"}));
  REQUIRE(pull(*store, whole, k_files));
  CHECK(**store->find_snapshot(whole.repo, whole.commit) == whole);
  CHECK(store->list_snapshots()->front().absent == 0);
  CHECK(store->list_pins()->size() == 1);
  check_invariants(*store);
}

TEST_CASE("Store::publish_snapshot refuses a part of another list, and unsafe absent names",
          "[store][snapshot][C13]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto whole = snapshot_of("org/name", '1', k_files);
  REQUIRE(pull(*store, whole, k_files));
  auto other = without(whole, {"weights"});
  other.absent[0].size += 1;
  CHECK(store->publish_snapshot(other).error().code == Errc::conflict);
  other.absent[0].path = "zz";
  CHECK(store->publish_snapshot(other).error().code == Errc::conflict);
  other.absent[0].path = "../weights";
  CHECK(store->publish_snapshot(other).error().code == Errc::invalid_argument);
  other.absent[0].path = "config.json/a";
  CHECK(store->publish_snapshot(other).error().code == Errc::malformed);
  CHECK(**store->find_snapshot(whole.repo, whole.commit) == whole);
}

TEST_CASE("A rebuilt index knows what is absent", "[store][snapshot]") {
  TempDir dir;
  const auto part = without(snapshot_of("org/name", '1', k_files), {"weights"});
  {
    const auto store = open_store(dir / "root");
    REQUIRE(pull(*store, part, {{"config.json", "{}"}, {"sub/a.bin", "aaa"}}));
  }
  auto options = small_options();
  options.rebuild_index = true;
  const auto store = open_store(dir / "root", options);
  CHECK(**store->find_snapshot(part.repo, part.commit) == part);
  check_invariants(*store);
}

TEST_CASE("Store::publish_snapshot mends a view that somebody damaged", "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto snapshot = snapshot_of("org/name", '1', k_files);
  REQUIRE(pull(*store, snapshot, k_files));
  fs::remove(store->snapshot_folder(snapshot.repo, snapshot.commit) / "weights");
  REQUIRE(store->publish_snapshot(snapshot));
  check_invariants(*store);
}

TEST_CASE("Store::publish_snapshot gives a repository without organisation a folder",
          "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto snapshot = snapshot_of("gpt2", '1', k_files);
  REQUIRE(pull(*store, snapshot, k_files));
  CHECK(store->snapshot_folder(snapshot.repo, snapshot.commit) ==
        dir / ("root/views/-/gpt2/" + std::string(40, '1')));
  check_invariants(*store);
}

TEST_CASE("Store::remove_snapshot removes rows, manifest and view, and keeps blobs",
          "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto snapshot = snapshot_of("org/name", '1', k_files);
  REQUIRE(pull(*store, snapshot, k_files));
  REQUIRE(store->remove_snapshot(snapshot.repo, snapshot.commit));
  CHECK_FALSE(*store->find_snapshot(snapshot.repo, snapshot.commit));
  CHECK_FALSE(fs::exists(dir / "root/views/org"));
  CHECK_FALSE(
      fs::exists(store->root() / store::layout::snapshot_manifest(snapshot.repo, snapshot.commit)));
  CHECK(*store->find_blob(sha("wwww")));
  CHECK(store->remove_snapshot(snapshot.repo, snapshot.commit).error().code == Errc::not_found);
}

TEST_CASE("Store::snapshot_files gives the blobs' bytes and holds them", "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto snapshot = snapshot_of("org/name", '1', k_files);
  REQUIRE(pull(*store, snapshot, k_files));
  auto files = store->snapshot_files(snapshot);
  REQUIRE(files);
  CHECK((*files)->name() == "name");
  REQUIRE((*files)->entries().size() == 3);
  CHECK((*files)->entries()[1].path == "sub/a.bin");
  const auto bytes = (*files)->bytes("weights");
  REQUIRE(bytes);
  CHECK(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) == "wwww");
  CHECK((*files)->bytes("none").error().code == Errc::not_found);
  CHECK(*store->in_use(sha("wwww")));
  files->reset();
  CHECK_FALSE(*store->in_use(sha("wwww")));
}

TEST_CASE("Store::find_commits finds a commit by its first digits", "[store][snapshot]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot_of("org/name", '1', k_files), k_files));
  REQUIRE(pull(*store, snapshot_of("org/name", '2', k_files), k_files));
  CHECK(store->find_commits(RepoId{"org/name"}, "1111")->size() == 1);
  CHECK(store->find_commits(RepoId{"org/name"}, "")->size() == 2);
  CHECK(store->find_commits(RepoId{"org/other"}, "1111")->empty());
}

TEST_CASE("Store::record_ref remembers where a revision was and its new name",
          "[store][ref][C05]") {
  TempDir dir;
  const store::Ref ref{RepoId{"old/name"}, "main", commit_of('1'), RepoId{"new/name"}, 1000};
  {
    const auto store = open_store(dir / "root");
    REQUIRE(store->record_ref(ref));
    auto moved = ref;
    moved.commit = commit_of('2');
    moved.revision = "refs/pr/1";
    REQUIRE(store->record_ref(moved));
  }
  const auto store = open_store(dir / "root");
  CHECK(**store->find_ref(RepoId{"old/name"}, "main") == ref);
  CHECK((*store->find_ref(RepoId{"old/name"}, "refs/pr/1"))->commit == commit_of('2'));
  CHECK_FALSE(*store->find_ref(RepoId{"old/name"}, "dev"));
  CHECK(store->list_refs()->size() == 2);
  check_invariants(*store);
}

TEST_CASE("Store::may_read opens gated content only to users who showed a token",
          "[store][access]") {
  TempDir dir;
  const RepoId repo{"org/gated"};
  {
    const auto store = open_store(dir / "root");
    CHECK(*store->may_read(repo, 1000));
    REQUIRE(store->record_access(repo, true, 1000));
  }
  const auto store = open_store(dir / "root");
  CHECK(*store->may_read(repo, 1000));
  CHECK_FALSE(*store->may_read(repo, 1001));
  REQUIRE(store->record_access(repo, true, 1001));
  CHECK(*store->may_read(repo, 1001));
}
