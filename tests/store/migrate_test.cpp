// SPDX-License-Identifier: Apache-2.0
#include "store/migrate.hpp"

#include "tests/store/fixture.hpp"

#include <array>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;

namespace {

constexpr std::array k_files{
    EmbeddedFile{"0002_second.sql", "ALTER TABLE t ADD COLUMN b INTEGER;"},
    EmbeddedFile{"0003_third.sql", "UPDATE t SET b = 7;"},
    EmbeddedFile{"index.sql", "CREATE TABLE written_by (version TEXT NOT NULL); "
                              "CREATE TABLE t (a INTEGER); INSERT INTO t (a) VALUES (1);"},
};

std::int64_t number(Db& db, const char* sql) {
  auto query = db.query(sql);
  const auto row = query.step();
  REQUIRE(row);
  REQUIRE(*row);
  return query.integer(0);
}

} // namespace

TEST_CASE("migrate runs each step between two versions once", "[store][migrate]") {
  TempDir dir;
  auto db = *Db::open(dir / "db", Db::Access::read_write);
  REQUIRE(migrate(db, k_files, 1));
  CHECK(number(db, "PRAGMA user_version") == 1);
  REQUIRE(migrate(db, k_files, 3));
  CHECK(number(db, "PRAGMA user_version") == 3);
  CHECK(number(db, "SELECT b FROM t") == 7);
  CHECK(migrate(db, k_files, 3));
}

TEST_CASE("migrate leaves everything as it was when a step fails", "[store][migrate]") {
  TempDir dir;
  auto db = *Db::open(dir / "db", Db::Access::read_write);
  REQUIRE(migrate(db, k_files, 1));
  auto broken = k_files;
  broken[1].text = "UPDATE nonsense SET b = 7;";
  CHECK_FALSE(migrate(db, broken, 3));
  CHECK(number(db, "PRAGMA user_version") == 1);
  CHECK(number(db, "SELECT count(*) FROM pragma_table_info('t')") == 1);
}

TEST_CASE("migrate says which step is missing", "[store][migrate]") {
  TempDir dir;
  auto db = *Db::open(dir / "db", Db::Access::read_write);
  REQUIRE(migrate(db, k_files, 1));
  const auto done = migrate(db, k_files, 4);
  REQUIRE_FALSE(done);
  CHECK(done.error().message.find("0004") != std::string::npos);
}
