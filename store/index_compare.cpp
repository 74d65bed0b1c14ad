// SPDX-License-Identifier: Apache-2.0
#include "store/index.hpp"

#include <fmt/format.h>

#include <array>

// Whole tables of two indexes side by side. Names of tables are ours, so they may stand in the
// text.

namespace modeld::store {
namespace {

/// What files and manifests say. snapshots.used repeats a time of use, so it does not count.
struct Table {
  const char* name;
  const char* columns;
};
constexpr std::array k_tables{
    Table{"blobs", "digest, size, git_oid, mtime_ns, damaged"},
    Table{"repos", "*"},
    Table{"repo_users", "*"},
    Table{"refs", "*"},
    Table{"snapshots", "repo, commit_id, files, bytes, added, damaged"},
    Table{"snapshot_files", "*"},
    Table{"variants", "*"},
    Table{"variant_sources", "*"},
    Table{"pins", "*"},
    Table{"pin_recipes", "*"},
    Table{"links", "*"},
    Table{"link_files", "*"},
};

/// Detached again whatever happens.
class Attached {
public:
  static Result<Attached> open(Db& db, const std::filesystem::path& file) {
    auto query = db.query("ATTACH DATABASE ? AS other");
    MODELD_TRY(query.bind(file.string()).run());
    return Attached(db);
  }
  Attached(Attached&& from) noexcept : db_(std::exchange(from.db_, nullptr)) {}
  Attached& operator=(Attached&&) = delete;
  ~Attached() {
    if (db_ == nullptr) return;
    [[maybe_unused]] const auto ignored = db_->execute("DETACH DATABASE other");
  }

private:
  explicit Attached(Db& db) : db_(&db) {}
  Db* db_;
};

Result<std::uint64_t> count(Db& db, const std::string& sql) {
  MODELD_ASSIGN(const auto statement, db.prepare(sql));
  Query query(statement.get(), nullptr);
  MODELD_ASSIGN(const bool row, query.step());
  return row ? query.size(0) : 0;
}

} // namespace

Result<std::vector<Index::Difference>> Index::compare(const std::filesystem::path& other) {
  MODELD_ASSIGN(const auto attached, Attached::open(db_, other));
  std::vector<Difference> differences;
  for (const Table& table : k_tables) {
    const auto only_in = [&](const char* first, const char* second) {
      return count(db_, fmt::format("SELECT count(*) FROM (SELECT {0} FROM {1}.{3} EXCEPT "
                                    "SELECT {0} FROM {2}.{3})",
                                    table.columns, first, second, table.name));
    };
    Difference difference{table.name, 0, 0};
    MODELD_ASSIGN(difference.only_here, only_in("main", "other"));
    MODELD_ASSIGN(difference.only_there, only_in("other", "main"));
    if (difference.only_here + difference.only_there > 0) differences.push_back(difference);
  }
  return differences;
}

Result<std::uint64_t> Index::count_rows() {
  std::uint64_t sum = 0;
  for (const Table& table : k_tables) {
    MODELD_ASSIGN(const auto rows, count(db_, fmt::format("SELECT count(*) FROM {}", table.name)));
    sum += rows;
  }
  return sum;
}

Result<void> Index::copy_work_to(const std::filesystem::path& other) {
  MODELD_ASSIGN(const auto attached, Attached::open(db_, other));
  return db_.execute(
      "BEGIN IMMEDIATE;"
      "INSERT INTO other.jobs SELECT * FROM main.jobs;"
      "INSERT INTO other.job_blobs SELECT * FROM main.job_blobs WHERE digest IN "
      "(SELECT digest FROM other.blobs);"
      "INSERT INTO other.leases SELECT * FROM main.leases WHERE digest IN "
      "(SELECT digest FROM other.blobs);"
      "INSERT INTO other.uses SELECT * FROM main.uses WHERE digest IN "
      "(SELECT digest FROM other.blobs);"
      "INSERT INTO other.charges SELECT * FROM main.charges WHERE digest IN "
      "(SELECT digest FROM other.blobs);"
      "UPDATE other.snapshots SET used = coalesce((SELECT used FROM main.snapshots m WHERE "
      "m.repo = other.snapshots.repo AND m.commit_id = other.snapshots.commit_id), 0);"
      "COMMIT");
}

} // namespace modeld::store
