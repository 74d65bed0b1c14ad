// SPDX-License-Identifier: Apache-2.0
#include "store/index.hpp"

#include "store/migrate.hpp"

namespace modeld::store {
namespace {

BlobRow read_blob(const Query& query) {
  BlobRow row;
  row.info.sha256 = query.digest<Sha256Digest>(0);
  row.info.size = query.size(1);
  row.info.git_oid = query.optional_digest<GitOid>(2);
  row.mtime_ns = query.integer(3);
  row.damaged = query.integer(4) != 0;
  return row;
}

// Statements are kept by address, so these live as long as the program.
const std::string k_all_snapshots =
    "SELECT repo, commit_id, files, bytes, added, used, damaged, "
    "(SELECT count(*) FROM absent_files a WHERE a.repo = s.repo AND a.commit_id = s.commit_id), "
    "(SELECT coalesce(sum(size), 0) FROM absent_files a WHERE a.repo = s.repo AND "
    "a.commit_id = s.commit_id) FROM snapshots s";
const std::string k_one_snapshot = k_all_snapshots + " WHERE repo = ? AND commit_id = ?";
const std::string k_sorted_snapshots = k_all_snapshots + " ORDER BY repo, commit_id";

SnapshotInfo read_snapshot_info(const Query& query) {
  SnapshotInfo row;
  row.repo = RepoId{query.text(0)};
  row.commit = query.digest<GitOid>(1);
  row.files = query.size(2);
  row.bytes = query.size(3);
  row.added = query.integer(4);
  row.used = query.integer(5);
  row.damaged = query.integer(6) != 0;
  row.absent = query.size(7);
  row.absent_bytes = query.size(8);
  return row;
}

Ref read_ref(const Query& query) {
  return {RepoId{query.text(0)}, query.text(1), query.digest<GitOid>(2), RepoId{query.text(3)},
          query.integer(4)};
}

/// The first row, or nothing.
template <class Read>
auto read_one(Query& query, Read read) -> Result<std::optional<decltype(read(query))>> {
  MODELD_ASSIGN(const bool row, query.step());
  if (!row) return std::nullopt;
  return read(query);
}

template <class Read>
auto read_all(Query& query, Read read) -> Result<std::vector<decltype(read(query))>> {
  std::vector<decltype(read(query))> rows;
  for (;;) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) return rows;
    rows.push_back(read(query));
  }
}

GitOid read_commit(const Query& query) {
  return query.digest<GitOid>(0);
}

Sha256Digest read_sha256(const Query& query) {
  return query.digest<Sha256Digest>(0);
}

} // namespace

Result<Index> Index::open(const std::filesystem::path& file, Db::Access access,
                          DiskWatcher* watcher) {
  MODELD_ASSIGN(auto db, Db::open(file, access, watcher));
  if (access == Db::Access::read_write) {
    MODELD_TRY(migrate(db, contracts::files()));
    MODELD_TRY(check_tables(db, contracts::files()));
  }
  return Index(std::move(db));
}

// ---- blobs

Result<void> Index::put_blob(const BlobRow& blob) {
  return db_
      .query("INSERT INTO blobs (digest, size, git_oid, mtime_ns, damaged) VALUES (?, ?, ?, ?, ?) "
             "ON CONFLICT (digest) DO UPDATE SET size = excluded.size, "
             "git_oid = excluded.git_oid, mtime_ns = excluded.mtime_ns, damaged = excluded.damaged")
      .bind(blob.info.sha256, blob.info.size, blob.info.git_oid, blob.mtime_ns, blob.damaged)
      .run();
}

Result<std::optional<BlobRow>> Index::find_blob(const Sha256Digest& digest) {
  auto query =
      db_.query("SELECT digest, size, git_oid, mtime_ns, damaged FROM blobs WHERE digest = ?");
  query.bind(digest);
  return read_one(query, read_blob);
}

Result<std::optional<BlobRow>> Index::find_blob(const GitOid& content) {
  auto query = db_.query("SELECT digest, size, git_oid, mtime_ns, damaged FROM blobs "
                         "WHERE git_oid = ? AND damaged = 0");
  query.bind(content);
  return read_one(query, read_blob);
}

Result<std::vector<BlobRow>> Index::list_blobs() {
  auto query =
      db_.query("SELECT digest, size, git_oid, mtime_ns, damaged FROM blobs ORDER BY digest");
  return read_all(query, read_blob);
}

Result<std::uint64_t> Index::blob_bytes() {
  auto query = db_.query("SELECT coalesce(sum(size), 0) FROM blobs WHERE NOT damaged");
  MODELD_ASSIGN(const bool row, query.step());
  return row ? query.size(0) : 0;
}

Result<void> Index::delete_blob(const Sha256Digest& digest) {
  return db_.query("DELETE FROM blobs WHERE digest = ?").bind(digest).run();
}

Result<void> Index::set_damaged(const Sha256Digest& digest, bool damaged) {
  MODELD_TRY(
      db_.query("UPDATE blobs SET damaged = ? WHERE digest = ?").bind(damaged, digest).run());
  // As an index that is made again has it: nobody can learn either from bytes that are not here.
  if (damaged) {
    MODELD_TRY(db_.query("UPDATE blobs SET git_oid = NULL, mtime_ns = 0 WHERE digest = ?")
                   .bind(digest)
                   .run());
  }
  return db_
      .query("UPDATE snapshots SET damaged = EXISTS (SELECT 1 FROM snapshot_files f JOIN blobs b "
             "ON b.digest = f.digest WHERE f.repo = snapshots.repo AND f.commit_id = "
             "snapshots.commit_id AND b.damaged) WHERE (repo, commit_id) IN "
             "(SELECT repo, commit_id FROM snapshot_files WHERE digest = ?)")
      .bind(digest)
      .run();
}

Result<std::vector<Sha256Digest>> Index::list_damaged() {
  auto query = db_.query("SELECT digest FROM blobs WHERE damaged ORDER BY digest");
  return read_all(query, read_sha256);
}

Result<void> Index::record_use(const Sha256Digest& digest, UnixTime when) {
  MODELD_TRY(db_.query("INSERT INTO uses (digest, used) SELECT digest, ?2 FROM blobs "
                       "WHERE digest = ?1 ON CONFLICT (digest) DO UPDATE SET "
                       "used = max(used, excluded.used)")
                 .bind(digest, when)
                 .run());
  return db_
      .query("UPDATE snapshots SET used = max(used, ?2) WHERE (repo, commit_id) IN "
             "(SELECT repo, commit_id FROM snapshot_files WHERE digest = ?1)")
      .bind(digest, when)
      .run();
}

Result<std::vector<std::pair<Sha256Digest, UnixTime>>> Index::list_uses() {
  auto query = db_.query("SELECT digest, used FROM uses");
  return read_all(query, [](const Query& row) {
    return std::pair(row.digest<Sha256Digest>(0), UnixTime{row.integer(1)});
  });
}

// ---- snapshots

Result<void> Index::put_snapshot(const Snapshot& snapshot, UnixTime added) {
  MODELD_TRY(db_.query("INSERT INTO snapshots (repo, commit_id, files, bytes, added) "
                       "VALUES (?, ?, ?, ?, ?)")
                 .bind(snapshot.repo.text, snapshot.commit, std::uint64_t{snapshot.files.size()},
                       snapshot.bytes(), added)
                 .run());
  return put_files(snapshot);
}

Result<void> Index::extend_snapshot(const Snapshot& snapshot) {
  MODELD_TRY(db_.query("DELETE FROM absent_files WHERE repo = ? AND commit_id = ?")
                 .bind(snapshot.repo.text, snapshot.commit)
                 .run());
  MODELD_TRY(put_files(snapshot));
  return correct_sums(snapshot.repo, snapshot.commit);
}

Result<void> Index::put_files(const Snapshot& snapshot) {
  for (const SnapshotFile& file : snapshot.files) {
    MODELD_TRY(db_.query("INSERT INTO snapshot_files (repo, commit_id, path, size, git_oid, "
                         "digest) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")
                   .bind(snapshot.repo.text, snapshot.commit, file.path, file.size, file.git_oid,
                         file.sha256)
                   .run());
  }
  for (const ListedFile& file : snapshot.absent) {
    MODELD_TRY(db_.query("INSERT INTO absent_files (repo, commit_id, path, size, git_oid, digest) "
                         "VALUES (?, ?, ?, ?, ?, ?)")
                   .bind(snapshot.repo.text, snapshot.commit, file.path, file.size, file.git_oid,
                         file.sha256)
                   .run());
  }
  return {};
}

Result<std::optional<Snapshot>> Index::find_snapshot(const RepoId& repo, const GitOid& commit) {
  MODELD_ASSIGN(const auto info, snapshot_info(repo, commit));
  if (!info) return std::nullopt;
  auto query = db_.query("SELECT path, size, git_oid, digest FROM snapshot_files "
                         "WHERE repo = ? AND commit_id = ? ORDER BY path");
  query.bind(repo.text, commit);
  Snapshot snapshot{repo, commit, {}};
  MODELD_ASSIGN(snapshot.files, read_all(query, [](const Query& row) {
                  return SnapshotFile{row.text(0), row.size(1), row.digest<GitOid>(2),
                                      row.digest<Sha256Digest>(3)};
                }));
  auto rest = db_.query("SELECT path, size, git_oid, digest FROM absent_files "
                        "WHERE repo = ? AND commit_id = ? ORDER BY path");
  rest.bind(repo.text, commit);
  MODELD_ASSIGN(snapshot.absent, read_all(rest, [](const Query& row) {
                  return ListedFile{row.text(0), row.size(1), row.digest<GitOid>(2),
                                    row.optional_digest<Sha256Digest>(3)};
                }));
  return snapshot;
}

Result<std::optional<SnapshotInfo>> Index::snapshot_info(const RepoId& repo, const GitOid& commit) {
  auto query = db_.query(k_one_snapshot.c_str());
  query.bind(repo.text, commit);
  return read_one(query, read_snapshot_info);
}

Result<std::vector<SnapshotInfo>> Index::list_snapshots() {
  auto query = db_.query(k_sorted_snapshots.c_str());
  return read_all(query, read_snapshot_info);
}

Result<std::vector<GitOid>> Index::list_commits(const RepoId& repo) {
  auto query = db_.query("SELECT commit_id FROM snapshots WHERE repo = ? ORDER BY commit_id");
  query.bind(repo.text);
  return read_all(query, read_commit);
}

Result<void> Index::delete_snapshot(const RepoId& repo, const GitOid& commit) {
  return db_.query("DELETE FROM snapshots WHERE repo = ? AND commit_id = ?")
      .bind(repo.text, commit)
      .run();
}

Result<void> Index::correct_sums(const RepoId& repo, const GitOid& commit) {
  return db_
      .query("UPDATE snapshots SET (files, bytes, damaged) = (SELECT count(*), "
             "coalesce(sum(f.size), 0), coalesce(max(b.damaged), 0) FROM snapshot_files f "
             "JOIN blobs b ON b.digest = f.digest WHERE f.repo = ?1 AND f.commit_id = ?2) "
             "WHERE repo = ?1 AND commit_id = ?2")
      .bind(repo.text, commit)
      .run();
}

Result<std::vector<Index::SnapshotBlobs>> Index::list_snapshot_blobs() {
  auto query = db_.query("SELECT repo, commit_id, digest FROM snapshot_files "
                         "ORDER BY repo, commit_id, path");
  std::vector<SnapshotBlobs> snapshots;
  for (;;) {
    MODELD_ASSIGN(const bool row, query.step());
    if (!row) return snapshots;
    const std::string_view repo = query.text_view(0);
    const auto commit = query.digest<GitOid>(1);
    if (snapshots.empty() || snapshots.back().commit != commit ||
        snapshots.back().repo.text != repo) {
      snapshots.push_back({RepoId{std::string(repo)}, commit, {}});
    }
    snapshots.back().blobs.push_back(query.digest<Sha256Digest>(2));
  }
}

Result<std::vector<Index::FileRow>> Index::files_of(const Sha256Digest& digest) {
  auto query = db_.query("SELECT repo, commit_id, path FROM snapshot_files WHERE digest = ? "
                         "ORDER BY repo, commit_id, path");
  query.bind(digest);
  return read_all(query, [&digest](const Query& row) {
    return FileRow{RepoId{row.text(0)}, row.digest<GitOid>(1), row.text(2), digest};
  });
}

Result<std::vector<Sha256Digest>> Index::variants_of(const Sha256Digest& result) {
  auto query = db_.query("SELECT key FROM variants WHERE result = ? ORDER BY key");
  query.bind(result);
  return read_all(query, read_sha256);
}

Result<bool> Index::is_named(const Sha256Digest& digest) {
  auto query = db_.query(
      "SELECT EXISTS (SELECT 1 FROM snapshot_files WHERE digest = ?1) OR "
      "EXISTS (SELECT 1 FROM variants WHERE result = ?1) OR "
      "EXISTS (SELECT 1 FROM leases WHERE digest = ?1) OR "
      "EXISTS (SELECT 1 FROM link_files WHERE digest = ?1) OR "
      "EXISTS (SELECT 1 FROM job_blobs b JOIN jobs j ON j.id = b.job WHERE b.digest = ?1 AND "
      "j.state IN ('queued', 'running'))");
  query.bind(digest);
  MODELD_ASSIGN(const bool row, query.step());
  return row && query.integer(0) != 0;
}

Result<void> Index::put_repo(const RepoRow& repo) {
  MODELD_TRY(db_.query("INSERT INTO repos (repo, canonical, gated) VALUES (?, ?, ?) "
                       "ON CONFLICT (repo) DO UPDATE SET canonical = excluded.canonical, "
                       "gated = excluded.gated")
                 .bind(repo.repo.text, repo.canonical.text, repo.gated)
                 .run());
  MODELD_TRY(db_.query("DELETE FROM refs WHERE repo = ?").bind(repo.repo.text).run());
  for (const Ref& ref : repo.refs) {
    MODELD_TRY(
        db_.query("INSERT INTO refs (repo, revision, commit_id, checked) VALUES (?, ?, ?, ?)")
            .bind(repo.repo.text, ref.revision, ref.commit, ref.checked)
            .run());
  }
  MODELD_TRY(db_.query("DELETE FROM repo_users WHERE repo = ?").bind(repo.repo.text).run());
  for (const std::uint32_t uid : repo.users) {
    MODELD_TRY(db_.query("INSERT INTO repo_users (repo, uid) VALUES (?, ?)")
                   .bind(repo.repo.text, uid)
                   .run());
  }
  return {};
}

Result<std::optional<RepoRow>> Index::find_repo(const RepoId& repo) {
  auto query = db_.query("SELECT canonical, gated FROM repos WHERE repo = ?");
  query.bind(repo.text);
  MODELD_ASSIGN(const bool found, query.step());
  if (!found) return std::nullopt;
  RepoRow row{repo, RepoId{query.text(0)}, query.integer(1) != 0, {}, {}};
  auto users = db_.query("SELECT uid FROM repo_users WHERE repo = ? ORDER BY uid");
  users.bind(repo.text);
  MODELD_ASSIGN(row.users, read_all(users, [](const Query& user) {
                  return static_cast<std::uint32_t>(user.integer(0));
                }));
  auto refs = db_.query("SELECT r.repo, r.revision, r.commit_id, p.canonical, r.checked FROM refs "
                        "r JOIN repos p ON p.repo = r.repo WHERE r.repo = ? ORDER BY r.revision");
  refs.bind(repo.text);
  MODELD_ASSIGN(row.refs, read_all(refs, read_ref));
  return row;
}

Result<std::vector<RepoId>> Index::list_repos() {
  auto query = db_.query("SELECT repo FROM repos ORDER BY repo");
  return read_all(query, [](const Query& row) { return RepoId{row.text(0)}; });
}

Result<void> Index::delete_repo(const RepoId& repo) {
  return db_.query("DELETE FROM repos WHERE repo = ?").bind(repo.text).run();
}

Result<std::optional<Ref>> Index::find_ref(const RepoId& repo, std::string_view revision) {
  auto query = db_.query("SELECT r.repo, r.revision, r.commit_id, p.canonical, r.checked FROM refs "
                         "r JOIN repos p ON p.repo = r.repo WHERE r.repo = ? AND r.revision = ?");
  query.bind(repo.text, revision);
  return read_one(query, read_ref);
}

Result<std::vector<Ref>> Index::list_refs() {
  auto query = db_.query("SELECT r.repo, r.revision, r.commit_id, p.canonical, r.checked FROM refs "
                         "r JOIN repos p ON p.repo = r.repo ORDER BY r.repo, r.revision");
  return read_all(query, read_ref);
}

Result<std::vector<RepoId>> Index::list_gated_repos() {
  auto query = db_.query("SELECT repo FROM repos WHERE gated ORDER BY repo");
  return read_all(query, [](const Query& row) { return RepoId{row.text(0)}; });
}

Result<bool> Index::may_read(const RepoId& repo, std::uint32_t uid) {
  auto query = db_.query("SELECT 1 FROM repos WHERE repo = ?1 AND gated AND NOT EXISTS "
                         "(SELECT 1 FROM repo_users WHERE repo = ?1 AND uid = ?2)");
  query.bind(repo.text, uid);
  MODELD_ASSIGN(const bool refused, query.step());
  return !refused;
}

// ---- variants

Result<void> Index::put_variant(const Variant& variant) {
  MODELD_TRY(db_.query("INSERT INTO variants (key, repo, commit_id, recipe, converter, imatrix, "
                       "result, size, file_name, build_ms, added) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
                 .bind(variant.key, variant.repo.text, variant.commit, variant.recipe,
                       variant.converter, variant.imatrix, variant.result, variant.size,
                       variant.file_name, variant.build_ms, variant.added)
                 .run());
  for (const VariantSource& source : variant.sources) {
    MODELD_TRY(db_.query("INSERT INTO variant_sources (key, path, digest) VALUES (?, ?, ?)")
                   .bind(variant.key, source.path, source.sha256)
                   .run());
  }
  return {};
}

Result<std::optional<Variant>> Index::find_variant(const Sha256Digest& key) {
  auto query = db_.query("SELECT repo, commit_id, recipe, converter, imatrix, result, size, "
                         "file_name, build_ms, added FROM variants WHERE key = ?");
  query.bind(key);
  MODELD_ASSIGN(const bool found, query.step());
  if (!found) return std::nullopt;
  Variant variant;
  variant.key = key;
  variant.repo = RepoId{query.text(0)};
  variant.commit = query.digest<GitOid>(1);
  variant.recipe = query.text(2);
  variant.converter = query.text(3);
  variant.imatrix = query.optional_digest<Sha256Digest>(4);
  variant.result = query.digest<Sha256Digest>(5);
  variant.size = query.size(6);
  variant.file_name = query.text(7);
  variant.build_ms = query.size(8);
  variant.added = query.integer(9);
  auto sources = db_.query("SELECT path, digest FROM variant_sources WHERE key = ? ORDER BY path");
  sources.bind(key);
  MODELD_ASSIGN(variant.sources, read_all(sources, [](const Query& row) {
                  return VariantSource{row.text(0), row.digest<Sha256Digest>(1)};
                }));
  return variant;
}

Result<std::optional<Sha256Digest>> Index::find_variant_key(const RepoId& repo,
                                                            const GitOid& commit,
                                                            std::string_view recipe,
                                                            std::string_view converter) {
  auto query = db_.query("SELECT key FROM variants WHERE repo = ? AND commit_id = ? AND "
                         "recipe = ? AND converter = ? ORDER BY imatrix IS NOT NULL, added DESC "
                         "LIMIT 1");
  query.bind(repo.text, commit, recipe, converter);
  return read_one(query, read_sha256);
}

Result<std::vector<Sha256Digest>> Index::list_variant_keys() {
  auto query = db_.query("SELECT key FROM variants ORDER BY repo, commit_id, recipe, key");
  return read_all(query, read_sha256);
}

Result<std::vector<Variant>> Index::list_variants() {
  MODELD_ASSIGN(const auto keys, list_variant_keys());
  return read_variants(keys);
}

Result<std::vector<Variant>> Index::variants_in(const RepoId& repo, const GitOid& commit) {
  MODELD_ASSIGN(const auto keys, list_variant_keys(repo, commit));
  return read_variants(keys);
}

Result<std::vector<Variant>> Index::read_variants(const std::vector<Sha256Digest>& keys) {
  std::vector<Variant> variants;
  variants.reserve(keys.size());
  for (const Sha256Digest& key : keys) {
    MODELD_ASSIGN(auto variant, find_variant(key));
    if (variant) variants.push_back(std::move(*variant));
  }
  return variants;
}

Result<std::vector<Sha256Digest>> Index::list_variant_keys(const RepoId& repo,
                                                           const GitOid& commit) {
  auto query =
      db_.query("SELECT key FROM variants WHERE repo = ? AND commit_id = ? ORDER BY recipe, key");
  query.bind(repo.text, commit);
  return read_all(query, read_sha256);
}

Result<void> Index::delete_variant(const Sha256Digest& key) {
  return db_.query("DELETE FROM variants WHERE key = ?").bind(key).run();
}

} // namespace modeld::store
