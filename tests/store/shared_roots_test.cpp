// SPDX-License-Identifier: Apache-2.0
#include "store/shared_roots.hpp"

#include "store/layout.hpp"
#include "store/quarantine.hpp"
#include "store/show.hpp"
#include "tests/store/fixture.hpp"

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
