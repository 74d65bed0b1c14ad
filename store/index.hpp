// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/blob_info.hpp"
#include "store/links.hpp"
#include "store/records.hpp"
#include "store/sqlite.hpp"
#include "store/variant.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

struct BlobRow {
  BlobInfo info;
  std::int64_t mtime_ns = 0;
  bool damaged = false;

  bool operator==(const BlobRow&) const = default;
};

/// What is known of a repository's name; its file is snapshots/<org>/<name>/repo.json.
struct RepoRow {
  RepoId repo;
  RepoId canonical;
  bool gated = false;
  std::vector<std::uint32_t> users; ///< who showed a token that works; sorted
  std::vector<Ref> refs;            ///< sorted by revision

  bool operator==(const RepoRow&) const = default;

  std::string to_json() const;
  static Result<RepoRow> from_json(std::string_view text);
};

/// The lease of a process or a deadline, with the boot in which the process lives.
struct LeaseRow {
  Lease lease;
  std::string boot_id;
};

/// Every statement of the index, over one connection (index*.cpp). One thread at a
/// time. Files are not touched here; the callers keep the order of writes.
class Index {
public:
  static Result<Index> open(const std::filesystem::path& file, Db::Access access,
                            DiskWatcher* watcher);

  Result<Txn> begin() { return Txn::begin(db_); }
  Db& db() { return db_; }

  // ---- two indexes of one store: index_compare.cpp
  /// How many rows of each table that manifests and files can make again are in one of the two
  /// only; nothing where they are equal row for row. `other` is a file that nobody has open.
  struct Difference {
    std::string table;
    std::uint64_t only_here = 0;
    std::uint64_t only_there = 0;
  };
  Result<std::vector<Difference>> compare(const std::filesystem::path& other);
  /// Jobs, leases and times of use, which no file has, into another index; those that speak of
  /// blobs that it does not know are left out.
  Result<void> copy_work_to(const std::filesystem::path& other);
  Result<std::uint64_t> count_rows(); ///< of the tables that compare() looks at

  // ---- blobs
  Result<void> put_blob(const BlobRow& blob);
  Result<std::optional<BlobRow>> find_blob(const Sha256Digest& digest);
  Result<std::optional<BlobRow>> find_blob(const GitOid& content);
  Result<std::vector<BlobRow>> list_blobs(); ///< by digest
  Result<std::uint64_t> blob_bytes();        ///< of all together
  Result<void> delete_blob(const Sha256Digest& digest);
  Result<void> set_damaged(const Sha256Digest& digest, bool damaged);
  Result<std::vector<Sha256Digest>> list_damaged();
  Result<void> record_use(const Sha256Digest& digest, UnixTime when);
  Result<std::vector<std::pair<Sha256Digest, UnixTime>>> list_uses();

  // ---- who pays: index_charges.cpp
  /// Charges what no snapshot and no variant names yet; to be called before it is named.
  Result<void> charge(const Sha256Digest& digest, std::uint32_t uid);
  Result<std::uint64_t> charged_to(std::uint32_t uid);                         ///< bytes
  Result<std::vector<std::pair<std::uint32_t, std::uint64_t>>> list_charges(); ///< by user id

  // ---- snapshots
  Result<void> put_snapshot(const Snapshot& snapshot, UnixTime added);
  /// One that is there: its new files and what is absent now.
  Result<void> extend_snapshot(const Snapshot& snapshot);
  Result<std::optional<Snapshot>> find_snapshot(const RepoId& repo, const GitOid& commit);
  Result<std::optional<SnapshotInfo>> snapshot_info(const RepoId& repo, const GitOid& commit);
  Result<std::vector<SnapshotInfo>> list_snapshots();
  Result<std::vector<GitOid>> list_commits(const RepoId& repo);
  Result<void> delete_snapshot(const RepoId& repo, const GitOid& commit);
  /// Sums and mark of damage of a snapshot, by its files.
  Result<void> correct_sums(const RepoId& repo, const GitOid& commit);
  struct FileRow {
    RepoId repo;
    GitOid commit;
    std::string path;
    Sha256Digest digest;
  };
  struct SnapshotBlobs {
    RepoId repo;
    GitOid commit;
    std::vector<Sha256Digest> blobs; ///< of its files, by path
  };
  Result<std::vector<SnapshotBlobs>> list_snapshot_blobs(); ///< by repository and commit
  Result<std::vector<FileRow>> files_of(const Sha256Digest& digest);
  Result<std::vector<Sha256Digest>> variants_of(const Sha256Digest& result); ///< keys
  /// Whether a snapshot, a variant, an unfinished job or a lease names the blob.
  Result<bool> is_named(const Sha256Digest& digest);
  Result<void> put_repo(const RepoRow& repo);
  Result<std::optional<RepoRow>> find_repo(const RepoId& repo);
  Result<std::vector<RepoId>> list_repos();
  Result<void> delete_repo(const RepoId& repo);
  Result<std::optional<Ref>> find_ref(const RepoId& repo, std::string_view revision);
  Result<std::vector<Ref>> list_refs();           ///< by repository and revision
  Result<std::vector<RepoId>> list_gated_repos(); ///< sorted
  Result<bool> may_read(const RepoId& repo, std::uint32_t uid);

  // ---- variants
  Result<void> put_variant(const Variant& variant);
  Result<std::optional<Variant>> find_variant(const Sha256Digest& key);
  Result<std::optional<Sha256Digest>> find_variant_key(const RepoId& repo, const GitOid& commit,
                                                       std::string_view recipe,
                                                       std::string_view converter);
  Result<std::vector<Sha256Digest>> list_variant_keys();
  Result<std::vector<Variant>> list_variants();
  Result<std::vector<Variant>> variants_in(const RepoId& repo, const GitOid& commit);
  Result<std::vector<Sha256Digest>> list_variant_keys(const RepoId& repo, const GitOid& commit);
  Result<void> delete_variant(const Sha256Digest& key);

  // ---- work: index_work.cpp
  Result<void> put_job(const JobRecord& job);
  Result<std::optional<JobRecord>> find_job(std::string_view id);
  Result<std::vector<JobRecord>> list_jobs();
  Result<std::vector<JobRecord>> unfinished_jobs();
  Result<void> delete_job(std::string_view id);
  Result<void> keep_for_job(std::string_view job, const Sha256Digest& digest);
  Result<std::vector<std::pair<std::string, Sha256Digest>>> list_job_blobs(); ///< unfinished jobs

  Result<void> put_pin(const Pin& pin);
  Result<std::optional<Pin>> find_pin(std::string_view name);
  Result<std::vector<Pin>> list_pins();
  Result<std::vector<std::string>> pins_of(const RepoId& repo, const GitOid& commit);
  Result<void> delete_pin(std::string_view name);

  Result<void> put_link(const LinkRecord& link);
  /// Without the files that are written or are links themselves; those are in the manifest.
  Result<std::vector<LinkRecord>> list_links();
  Result<void> delete_link(std::string_view id);
  /// Each blob of links that keep it, with "<target> <root>".
  Result<std::vector<std::pair<std::string, Sha256Digest>>> list_link_blobs();

  Result<void> put_lease(const LeaseRow& lease);
  Result<std::vector<LeaseRow>> list_leases();
  Result<bool> delete_lease(std::string_view id); ///< whether it was there

private:
  explicit Index(Db db) : db_(std::move(db)) {}

  Result<void> put_files(const Snapshot& snapshot);
  Result<std::vector<Variant>> read_variants(const std::vector<Sha256Digest>& keys);

  Db db_;
};

} // namespace modeld::store
