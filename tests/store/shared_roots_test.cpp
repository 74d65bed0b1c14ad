// SPDX-License-Identifier: Apache-2.0
#include "store/shared_roots.hpp"

#include "store/layout.hpp"
#include "store/quarantine.hpp"
#include "store/show.hpp"
#include "tests/store/fixture.hpp"
#include "tests/store/hanging_open.hpp"

#include <chrono>
#include <fstream>
#include <future>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

const Files k_files{{"config.json", "{}"}, {"sub/weights", "wwww"}};

/// A store that was filled and left, and another one above it.
struct Subject {
  TempDir dir;
  Snapshot snapshot = snapshot_of("org/Name", '1', k_files);
  Variant variant = variant_of(snapshot, "Q4_K_M", "gguf");
  std::unique_ptr<Store> store;

  Subject() {
    {
      const auto shared = open_store(dir / "shared");
      REQUIRE(pull(*shared, snapshot, k_files));
      REQUIRE(ingest(*shared, "gguf"));
      REQUIRE(shared->publish_variant(variant));
      REQUIRE(shared->record_ref({snapshot.repo, "main", snapshot.commit, snapshot.repo, 7}));
      REQUIRE(shared->record_access(RepoId{"org/Closed"}, true, 1000));
    }
    store = open();
  }

  /// By itself, without what lies below it.
  void check_own() {
    store.reset();
    check_invariants(*open_store(dir / "own"));
  }

  std::unique_ptr<Store> open() const {
    auto options = small_options();
    options.shared_roots = {dir / "shared"};
    options.shared_patience = std::chrono::milliseconds(100);
    return open_store(dir / "own", options);
  }
};

} // namespace

TEST_CASE("what only a shared store has is found there, and paths lead there", "[store][shared]") {
  Subject s;
  Store& store = *s.store;
  CHECK(*store.find_snapshot(s.snapshot.repo, s.snapshot.commit) == s.snapshot);
  CHECK(store.find_ref(s.snapshot.repo, "main")->value().commit == s.snapshot.commit);
  CHECK(store.list_snapshots()->size() == 1);
  CHECK(store.list_refs()->size() == 1);
  CHECK(*store.find_variant(s.variant.key) == s.variant);
  CHECK(*store.find_variant(s.variant.repo, s.variant.commit, s.variant.recipe) == s.variant);
  CHECK(read_file(store.variant_path(s.variant)) == "gguf");
  CHECK(read_file(store.snapshot_folder(s.snapshot.repo, s.snapshot.commit) / "sub/weights") ==
        "wwww");
  CHECK(read_file(store.blob_path(sha("wwww"))) == "wwww");
  CHECK(looks_unchanged(*s.store, sha("wwww")));
  CHECK(s.store->grant_lease(sha("wwww"), {}, 0, "test"));
  CHECK(*store.may_read(RepoId{"org/Closed"}, 1000));
  CHECK_FALSE(*store.may_read(RepoId{"org/Closed"}, 1001));
  s.check_own();
}

TEST_CASE("a snapshot that shares files with a shared store brings them in when it is published",
          "[store][shared]") {
  Subject s;
  auto other = snapshot_of("org/Other", '2', {{"README", "mine"}, {"weights", "wwww"}});
  REQUIRE(ingest(*s.store, "mine"));
  REQUIRE(s.store->publish_snapshot(other));
  CHECK(fs::exists(s.dir / "own" / layout::blob(sha("wwww"))));
  CHECK(s.store->list_snapshots()->size() == 2);
  s.check_own();
}

TEST_CASE("a missing mount of a shared store is never an empty one", "[store][shared]") {
  Subject s;
  fs::rename(s.dir / "shared", s.dir / "away");
  // While it runs: what was there is not here, and what is here goes on.
  CHECK_FALSE(s.store->find_snapshot(s.snapshot.repo, s.snapshot.commit)->has_value());
  REQUIRE(ingest(*s.store, "goes on"));
  s.store.reset();
  auto options = small_options();
  options.shared_roots = {s.dir / "shared"};
  SECTION("nothing is there") {}
  SECTION("an empty folder is there") {
    fs::create_directories(s.dir / "shared");
  }
  const auto refused = Store::open(s.dir / "own", options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::not_found);
  CHECK(refused.error().hint.find("mount the file system") != std::string::npos);
  fs::remove(s.dir / "shared");
  fs::rename(s.dir / "away", s.dir / "shared");
  CHECK(*s.open()->find_snapshot(s.snapshot.repo, s.snapshot.commit) == s.snapshot);
}

TEST_CASE("a shared store's manifests are read again only where their folder changed",
          "[store][shared]") {
  Subject s;
  const auto folder = s.dir / "shared/snapshots/org/Name";
  const auto manifest =
      s.dir / "shared" / layout::snapshot_manifest(s.snapshot.repo, s.snapshot.commit);
  const auto settle = [&] {
    const auto then = fs::file_time_type::clock::now() - std::chrono::seconds(60);
    for (const char* path :
         {"shared/snapshots", "shared/snapshots/org", "shared/snapshots/org/Name"}) {
      fs::last_write_time(s.dir / path, then);
    }
  };
  settle();
  REQUIRE(s.store->list_snapshots()->size() == 1);
  // In place, which no store does: whoever reads it again sees no snapshot.
  const std::string text = read_file(manifest);
  fs::permissions(manifest, fs::perms(0644));
  std::ofstream(manifest, std::ios::trunc) << "{}";
  CHECK(s.store->list_snapshots()->size() == 1);
  CHECK(s.store->list_refs()->size() == 1);
  std::ofstream(manifest, std::ios::trunc) << text;

  {
    const auto shared = open_store(s.dir / "shared");
    REQUIRE(pull(*shared, snapshot_of("org/Name", '3', k_files), k_files));
    REQUIRE(pull(*shared, snapshot_of("org/New", '4', k_files), k_files));
  }
  CHECK(s.store->list_snapshots()->size() == 3);
  settle();
  CHECK(s.store->list_snapshots()->size() == 3);
  fs::remove(manifest);
  CHECK(s.store->list_snapshots()->size() == 2);
  CHECK_FALSE(s.store->find_snapshot(s.snapshot.repo, s.snapshot.commit)->has_value());
}

TEST_CASE("a shared store that is mounted again is found again", "[store][shared]") {
  Subject s;
  REQUIRE(s.store->list_snapshots()->size() == 1);
  fs::rename(s.dir / "shared", s.dir / "away");
  CHECK(s.store->list_snapshots()->empty());
  fs::copy(s.dir / "away", s.dir / "shared", fs::copy_options::recursive); // other inodes
  CHECK(s.store->list_snapshots()->size() == 1);
  CHECK(*s.store->find_snapshot(s.snapshot.repo, s.snapshot.commit) == s.snapshot);
  fs::remove_all(s.dir / "shared");
  {
    const auto other = open_store(s.dir / "shared"); // another disk in the same place
    REQUIRE(pull(*other, snapshot_of("org/Other", '5', k_files), k_files));
  }
  CHECK(s.store->list_snapshots()->empty());
}

TEST_CASE("a shared disk that hangs holds up nobody who asks for something else",
          "[store][shared]") {
  Subject s;
  const auto own = snapshot_of("org/Own", '6', {{"README", "mine"}});
  REQUIRE(pull(*s.store, own, {{"README", "mine"}}));
  auto disk =
      std::make_unique<HangingOpen>(layout::snapshot_manifest(s.snapshot.repo, s.snapshot.commit));
  auto hangs = std::async(std::launch::async, [&] {
    return s.store->find_snapshot(s.snapshot.repo, s.snapshot.commit)->has_value();
  });
  CHECK(hangs.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
  auto goes_on = std::async(std::launch::async, [&] {
    return s.store->find_snapshot(own.repo, own.commit)->has_value() &&
           pull(*s.store, snapshot_of("org/Own", '7', k_files), k_files).has_value();
  });
  CHECK(goes_on.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  // Nor do others hang who ask for something on it, while one does.
  CHECK_FALSE(s.store->find_snapshot(s.snapshot.repo, s.snapshot.commit)->has_value());
  CHECK(s.store->list_snapshots()->size() == 2);
  CHECK_FALSE(s.store->shared_status().front().there);
  disk.reset();
  CHECK(hangs.get());
  CHECK(s.store->shared_status().front().there);
  CHECK(goes_on.get());
}

TEST_CASE("nothing is ever written to a shared store", "[store][shared][S8]") {
  Subject s;
  const auto state = [&s] {
    std::map<std::string, fs::file_time_type> times;
    for (const auto& entry : fs::recursive_directory_iterator(s.dir / "shared")) {
      times[entry.path().string()] = entry.last_write_time();
    }
    return times;
  };
  const auto before = state();
  REQUIRE(s.store->remove_snapshot(s.snapshot.repo, s.snapshot.commit).error().code ==
          Errc::not_found);
  ShowOptions options;
  options.root = s.dir / "target";
  REQUIRE(show(*s.store, ShowTarget::folder, {s.snapshot, {s.variant}, {}, {}}, options));
  CHECK(read_file(s.dir / "target/sub/weights") == "wwww");
  CHECK(state() == before);
  s.check_own();
}
