// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "store/layout.hpp"
#include "store/sqlite.hpp"
#include "tests/store/fixture.hpp"

#include <sys/stat.h>

using namespace modeld;
using namespace modeld::test;
using store::Store;
namespace fs = std::filesystem;

TEST_CASE("Store::open makes the layout of a new store", "[store][open]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  for (const char* name : {"modeld.id", "lock", "index.sqlite", "blobs/sha256", "snapshots",
                           "variants", "tmp", "views"}) {
    INFO(name);
    CHECK(fs::exists(store->root() / name));
  }
  CHECK(store->id().size() == 32);
}

TEST_CASE("Store::open keeps the id of a store", "[store][open]") {
  TempDir dir;
  const std::string id = open_store(dir / "root")->id();
  CHECK(open_store(dir / "root")->id() == id);
}

TEST_CASE("Store::open refuses a folder that has content but no marker", "[store][open]") {
  TempDir dir;
  write_file(dir / "root/thesis.txt", "do not touch");
  const auto opened = Store::open(dir / "root", small_options());
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::conflict);
  CHECK(opened.error().message.find("thesis.txt") != std::string::npos);
  CHECK_FALSE(fs::exists(dir / "root/lock"));
}

TEST_CASE("Store::open refuses when the parent folder is missing", "[store][open]") {
  TempDir dir;
  const auto opened = Store::open(dir / "no/root", small_options());
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::not_found);
}

TEST_CASE("Store::open takes an empty folder for no store where one is expected", "[store][open]") {
  TempDir dir;
  fs::create_directory(dir / "root");
  auto options = small_options();
  options.expected_id = std::string(32, 'a');
  const auto opened = Store::open(dir / "root", options);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::not_found);
  CHECK(fs::is_empty(dir / "root"));
}

TEST_CASE("Store::open refuses another store than the expected one", "[store][open]") {
  TempDir dir;
  open_store(dir / "root");
  auto options = small_options();
  options.expected_id = std::string(32, 'a');
  const auto opened = Store::open(dir / "root", options);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::conflict);
}

TEST_CASE("Store::open with Create::never does not make a store", "[store][open]") {
  TempDir dir;
  auto options = small_options();
  options.create = store::StoreOptions::Create::never;
  CHECK(Store::open(dir / "root", options).error().code == Errc::not_found);
  CHECK_FALSE(fs::exists(dir / "root"));
}

TEST_CASE("Store::open refuses a layout that a newer version made, and names it", "[store][open]") {
  TempDir dir;
  write_file(dir / "root/modeld.id",
             "modeld.store 2\nid " + std::string(32, 'a') + "\ncreated-by 9.4.1\n");
  const auto opened = Store::open(dir / "root", small_options());
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::unsupported);
  CHECK(opened.error().message.find("9.4.1") != std::string::npos);
}

TEST_CASE("Store::open refuses an index of a newer schema, and names its writer", "[store][open]") {
  TempDir dir;
  open_store(dir / "root");
  {
    auto db = store::Db::open(dir / "root/index.sqlite", store::Db::Access::read_write);
    REQUIRE(db);
    REQUIRE(db->execute("UPDATE written_by SET version='9.4.1'; PRAGMA user_version=99"));
  }
  const auto opened = Store::open(dir / "root", small_options());
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::unsupported);
  CHECK(opened.error().message.find("9.4.1") != std::string::npos);
}

TEST_CASE("Store::open calls an index corrupt that is no database", "[store][open]") {
  TempDir dir;
  open_store(dir / "root");
  write_file(dir / "root/index.sqlite", std::string(8192, 'x'));
  const auto opened = Store::open(dir / "root", small_options());
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == Errc::corrupt);
  CHECK(opened.error().hint.find("fsck") != std::string::npos);
}

TEST_CASE("Store::open sweeps tmp/ but keeps partial files", "[store][open]") {
  TempDir dir;
  open_store(dir / "root");
  write_file(dir / "root/tmp/ingest-1-2", "left over");
  write_file(dir / "root/tmp/view-1-2/a/b", "left over");
  write_file(dir / "root/tmp/resume-key.part", "half");
  const auto store = open_store(dir / "root");
  CHECK_FALSE(fs::exists(dir / "root/tmp/ingest-1-2"));
  CHECK_FALSE(fs::exists(dir / "root/tmp/view-1-2"));
  CHECK(read_file(dir / "root/tmp/resume-key.part") == "half");
}

TEST_CASE("Store::open fills the reserve file and survives without it", "[store][open]") {
  TempDir dir;
  auto options = small_options();
  options.reserve_file = 1U << 20;
  open_store(dir / "root", options);
  CHECK(fs::file_size(dir / "root/reserve") == 1U << 20);
  open_store(dir / "root");
  CHECK_FALSE(fs::exists(dir / "root/reserve"));
}

TEST_CASE("Store::reserve_space refuses more than is free, with the numbers", "[store][space]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto refused = store->reserve_space(1ULL << 60);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::no_space);
  std::map<std::string, std::string> details(refused.error().details.begin(),
                                             refused.error().details.end());
  CHECK(details.at("needed") == std::to_string(1ULL << 60));
  CHECK(details.contains("free"));
  CHECK(store->usage()->reserved == 0);
}

TEST_CASE("Store::reserve_space counts other reservations", "[store][space]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto free = store->usage()->free;
  const auto first = store->reserve_space(free / 4 * 3);
  REQUIRE(first);
  CHECK_FALSE(store->reserve_space(free / 2));
  (*first)->use(free / 2);
  CHECK(store->usage()->reserved == free / 4 * 3 - free / 2);
}

TEST_CASE("Store::reserve_space gives space back with the reservation", "[store][space]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  store->reserve_space(1000);
  CHECK(store->usage()->reserved == 0);
}

TEST_CASE("Store::reserve_space holds the store's own limit", "[store][space]") {
  TempDir dir;
  auto options = small_options();
  options.max_bytes = 100;
  const auto store = open_store(dir / "root", options);
  REQUIRE(ingest(*store, std::string(60, 'x')));
  const auto refused = store->reserve_space(41);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::no_space);
  const auto first = store->reserve_space(40);
  REQUIRE(first);
  CHECK_FALSE(store->reserve_space(1));
}
