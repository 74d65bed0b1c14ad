// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/snapshot.hpp"
#include "store/ingest.hpp"
#include "store/records.hpp"
#include "store/space.hpp"
#include "store/variant.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

class DiskWatcher;

struct StoreOptions {
  enum class Create { if_missing, never };
  Create create = Create::if_missing; ///< a new store only in a missing or an empty folder
  std::string expected_id; ///< the marker's id, where known: an unmounted store is no store
  std::uint64_t min_free = 256U << 20;    ///< bytes that reservations leave free
  std::uint64_t reserve_file = 64U << 20; ///< size of `reserve`; 0 for none
  std::uint64_t max_bytes = 0;            ///< of all blobs together; 0: as much as the disk holds
  UserQuotas user_quotas;
  std::uint32_t blob_mode = 0444;
  std::uint32_t folder_mode = 0755; ///< whatever the umask is; an inherited group bit stays
  /// Of every file and folder, so that its members can map blobs and nobody can change them.
  std::optional<std::uint32_t> group;
  bool rebuild_index = false;  ///< make a new index out of the manifests first
  bool restore_marker = false; ///< write modeld.id again where it is lost and the rest is a store's
  /// Other stores, read only, in which to look for what this one has not.
  std::vector<std::filesystem::path> shared_roots;
  std::chrono::milliseconds shared_patience{5000}; ///< with one that hangs
  DiskWatcher* watcher = nullptr;                  ///< sees every write; tests inject faults here
};

/// Keeps blobs from collection while it lives. Movable, any thread.
class BlobHold {
public:
  BlobHold() = default;
  struct Table;
  BlobHold(std::shared_ptr<Table> table, std::vector<Sha256Digest> digests);

private:
  std::shared_ptr<void> entry_;
};

/// The one owner of a store's root folder (design.md section 3). Every member may be called from
/// any thread; calls that write or hash block and belong into jobs, lookups take microseconds.
///
/// Invariants, also after kill -9 or a power cut at any moment:
/// 1. A file under blobs/ has the SHA-256 that is its name.
/// 2. A row names only blobs, manifests and views that are there.
/// 3. A snapshot is listed only when all files that it says are here are there and proved.
/// 4. A manifest is there for every snapshot, ref, pin and variant that has a row.
/// 5. What was acknowledged is still there after a restart.
class Store {
public:
  /// Locks the root for life. conflict: a second owner, foreign content without our marker, or
  /// another store than expected; unsupported: written by a newer version (which is named).
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& root,
                                             StoreOptions options = {});
  ~Store();

  const std::filesystem::path& root() const;
  const std::string& id() const; ///< of the marker, 32 hexadecimal digits
  /// What was wrong and put right while it was opened, a sentence each.
  const std::vector<std::string>& mended() const;
  /// Another number after every change of snapshots, refs, readers or variants, and after damage:
  /// an answer that was made of them is good while it stays the same.
  std::uint64_t generation() const;

  // ---- blobs
  Result<std::unique_ptr<Ingest>> begin_ingest(Expected expected);
  /// A partial file under tmp/ that survives kill -9 and restart, named by the key (1 to 128 of
  /// [A-Za-z0-9_.-]); what is there is hashed again first. busy while another ingest has the key.
  Result<std::unique_ptr<Ingest>> resume_ingest(std::string_view key, Expected expected);
  /// Takes the content of a file: reflink where the file system can, else copy. The source is never
  /// trusted before it is hashed and never shared with us as an inode that others can write.
  Result<BlobInfo> ingest_file(const std::filesystem::path& source, Expected expected);
  Result<std::optional<BlobInfo>> find_blob(const Sha256Digest& digest) const;
  Result<std::optional<BlobInfo>> find_blob(const GitOid& content) const;
  std::filesystem::path blob_path(const Sha256Digest& digest) const;
  BlobHold hold(std::vector<Sha256Digest> digests);
  /// Remembers a use for collection by age; written to the index by flush_uses() and at the end.
  void touch(const Sha256Digest& digest);
  Result<void> flush_uses();

  // ---- space
  /// no_space with `needed`, `free`, `reserved` (bytes) in the details; where it is the payer's
  /// quota that is too small, with `needed`, `quota`, `used`, `reserved` and `user`.
  Result<std::shared_ptr<SpaceReservation>> reserve_space(std::uint64_t bytes,
                                                          std::optional<std::uint32_t> payer = {});
  /// The same refusal where nothing is left of a user's quota, before it is known what is needed.
  Result<void> check_quota(std::uint32_t uid) const;
  std::uint64_t quota_of(std::uint32_t uid) const; ///< 0: none
  /// Of everybody who is charged, asks or has a quota by name; by user id.
  Result<std::vector<UserUsage>> user_usage() const;
  Result<Usage> usage() const;
  Result<std::uint64_t> stored_bytes() const; ///< of all blobs
  void refill_reserve();                      ///< after a collection that needed it
  std::vector<SharedStatus> shared_status() const;

  // ---- snapshots
  /// All blobs of its files must be there (not_found names the first that is not). Manifest, view
  /// folder, row. Publishing what is already there is fine; files that were absent join those that
  /// are here. conflict where the commit is here with another list. payer: who is charged for files
  /// that nothing named before (UserUsage).
  Result<void> publish_snapshot(const Snapshot& snapshot, std::optional<std::uint32_t> payer = {});
  Result<std::optional<Snapshot>> find_snapshot(const RepoId& repo, const GitOid& commit) const;
  Result<std::vector<SnapshotInfo>> list_snapshots() const;
  Result<std::optional<SnapshotInfo>> snapshot_info(const RepoId& repo, const GitOid& commit) const;
  /// Rows, manifest and view; blobs stay until collection. not_found; conflict while pinned.
  Result<void> remove_snapshot(const RepoId& repo, const GitOid& commit);
  /// The folder views/<org>/<name>/<commit> with every file that is here, read-only by convention.
  std::filesystem::path snapshot_folder(const RepoId& repo, const GitOid& commit) const;
  /// The files as mapped blobs, kept from collection while the set lives.
  Result<std::unique_ptr<FileSet>> snapshot_files(const Snapshot& snapshot);
  /// Commits of a repository that start with these hexadecimal digits (4 or more).
  Result<std::vector<GitOid>> find_commits(const RepoId& repo, std::string_view prefix) const;

  Result<void> record_ref(const Ref& ref);
  Result<std::optional<Ref>> find_ref(const RepoId& repo, std::string_view revision) const;
  Result<std::vector<Ref>> list_refs() const;

  /// Content that needed a token: only users who showed one that works may read it.
  Result<void> record_access(const RepoId& repo, bool gated, std::optional<std::uint32_t> uid);
  Result<bool> may_read(const RepoId& repo, std::uint32_t uid) const;
  /// Repositories for which may_read() has to be asked, sorted; everybody may read all others.
  /// Nothing where it has to be asked for each, because of shared stores.
  Result<std::optional<std::vector<RepoId>>> gated_repos() const;

  // ---- variants
  /// The result blob must be there. Manifest, link in the view, row.
  Result<void> publish_variant(const Variant& variant, std::optional<std::uint32_t> payer = {});
  Result<std::optional<Variant>> find_variant(const Sha256Digest& key) const;
  /// By what was asked, for the current converter version: one look-up.
  Result<std::optional<Variant>> find_variant(const RepoId& repo, const GitOid& commit,
                                              std::string_view recipe) const;
  Result<std::vector<Variant>> list_variants() const;
  Result<void> remove_variant(const Sha256Digest& key);
  std::filesystem::path variant_path(const Variant& variant) const;

  // ---- jobs
  Result<void> put_job(const JobRecord& job); ///< inserts or replaces
  Result<std::optional<JobRecord>> find_job(std::string_view id) const;
  Result<std::vector<JobRecord>> list_jobs() const; ///< newest first
  Result<std::vector<JobRecord>>
  unfinished_jobs() const; ///< oldest first: to go on after a restart
  Result<void> delete_job(std::string_view id);

  // ---- pins
  Result<void> put_pin(const Pin& pin); ///< the snapshot must be there
  Result<std::optional<Pin>> find_pin(std::string_view name) const;
  Result<std::vector<Pin>> list_pins() const;
  Result<void> delete_pin(std::string_view name);

  // ---- leases
  Result<Lease> grant_lease(const Sha256Digest& blob, LeaseHolder holder, std::uint32_t uid,
                            std::string note);
  Result<void> release_lease(std::string_view id);
  /// All leases of a connection that is gone.
  void release_connection(std::uint64_t connection);
  /// Those that still hold: ended processes and passed deadlines are removed on the way.
  Result<std::vector<Lease>> list_leases();
  Result<bool> in_use(const Sha256Digest& blob); ///< held or leased

  struct State;
  explicit Store(std::unique_ptr<State> state);
  /// For this folder's own sources: collection, repair, views.
  State& internals();

private:
  std::unique_ptr<State> state_;
};

} // namespace modeld::store
