// SPDX-License-Identifier: Apache-2.0
#include "store/migrate.hpp"

#include "schema/version.hpp"

#include <fmt/format.h>

#include <algorithm>

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

} // namespace

Result<void> migrate(Db& db, std::span<const EmbeddedFile> files, int version) {
  MODELD_ASSIGN(const auto found, user_version(db));
  if (found == version) return {};
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
