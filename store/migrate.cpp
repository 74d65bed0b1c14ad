// SPDX-License-Identifier: Apache-2.0
#include "store/migrate.hpp"

#include "schema/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace modeld::store {
namespace {

Result<std::int64_t> user_version(Db& db) {
  auto query = db.query("PRAGMA user_version");
  MODELD_ASSIGN(const bool row, query.step());
  return row ? query.integer(0) : 0;
}

std::string writer(Db& db) {
  auto query = db.query("SELECT version FROM written_by");
  const auto row = query.step();
  return row && *row ? query.text(0) : "an unknown version";
}

Result<std::string_view> find_file(std::span<const EmbeddedFile> files, std::string_view start) {
  const auto at = std::find_if(files.begin(), files.end(), [start](const EmbeddedFile& file) {
    return file.name.starts_with(start);
  });
  if (at != files.end()) return at->text;
  return fail(Errc::internal, fmt::format("migrating the index: no file '{}...'", start));
}

Result<std::string> steps(std::span<const EmbeddedFile> files, std::int64_t from, int to) {
  if (from == 0) {
    MODELD_ASSIGN(const auto whole, find_file(files, "index.sql"));
    return fmt::format("{};INSERT INTO written_by VALUES ('');", whole);
  }
  std::string sql;
  for (std::int64_t next = from + 1; next <= to; ++next) {
    MODELD_ASSIGN(const auto step, find_file(files, fmt::format("{:04}_", next)));
    sql += step;
    sql += ';';
  }
  return sql;
}

/// What the contract makes: "CREATE TABLE name (" and "CREATE INDEX name ON".
std::vector<std::string> made_by(std::string_view sql) {
  std::vector<std::string> names;
  for (const std::string_view start : {"CREATE TABLE ", "CREATE INDEX "}) {
    for (auto at = sql.find(start); at != std::string_view::npos; at = sql.find(start, at + 1)) {
      const auto from = at + start.size();
      names.emplace_back(sql.substr(from, sql.find(' ', from) - from));
    }
  }
  return names;
}

} // namespace

Result<void> check_tables(Db& db, std::span<const EmbeddedFile> files) {
  MODELD_ASSIGN(const auto whole, find_file(files, "index.sql"));
  for (const std::string& name : made_by(whole)) {
    auto query = db.query("SELECT 1 FROM sqlite_master WHERE name = ?");
    query.bind(name);
    MODELD_ASSIGN(const bool there, query.step());
    if (!there) {
      return fail(Errc::corrupt, fmt::format("opening the index: its '{}' is missing", name),
                  k_rebuild_hint);
    }
  }
  return {};
}

Result<void> migrate(Db& db, std::span<const EmbeddedFile> files, int version) {
  MODELD_ASSIGN(const auto found, user_version(db));
  if (found == version) return {};
  if (found == 0) {
    auto query = db.query("SELECT count(*) FROM sqlite_master");
    MODELD_ASSIGN(const bool row, query.step());
    if (row && query.integer(0) > 0) {
      return fail(Errc::corrupt, "opening the index: it has tables and no version", k_rebuild_hint);
    }
  }
  if (found > version) {
    return fail(Errc::unsupported,
                fmt::format("opening the index: schema version {} was written by modeld {}, this "
                            "is modeld {} with version {}",
                            found, writer(db), k_version, version),
                "use a modeld at least as new as the one that wrote the index");
  }
  MODELD_ASSIGN(auto sql, steps(files, found, version));
  sql += fmt::format("UPDATE written_by SET version = '{}';PRAGMA user_version = {};", k_version,
                     version);
  MODELD_ASSIGN(auto txn, Txn::begin(db));
  MODELD_TRY(db.execute(sql));
  return txn.commit();
}

} // namespace modeld::store
