// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/fsck.hpp"
#include "store/index.hpp"
#include "store/state.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace modeld::store {

/// One run of fsck: what the parts share. Single thread.
class FsckRun {
public:
  FsckRun(Store& store, const FsckOptions& options, Progress* progress)
      : store_(store), state_(store.internals()), options_(options), progress_(progress) {}

  Result<FsckReport> run();
  /// See fsck.hpp; fsck_records.cpp.
  Result<FsckReport> save_records();

private:
  using Fix = std::function<Result<void>()>;

  /// Notes a finding; with --repair also applies the remedy.
  void found(std::string_view id, std::string path, std::string message, std::string remedy = {},
             const Fix& fix = {});
  Result<void> check_cancel() const;
  /// Out of the way, but not lost.
  Result<void> set_aside(const std::string& path);
  Result<void> write_manifest(const std::string& path, const std::string& text);
  /// Changes rows in one transaction.
  Result<void> change_rows(const std::function<Result<void>(Index&)>& change);

  // fsck_blobs.cpp
  Result<void> check_blobs();
  Result<void> check_blob_folder(const std::string& folder);
  Result<void> check_blob_file(const Sha256Digest& digest, const std::string& path);
  Result<void> check_content(const BlobRow& row, const std::string& path);
  Result<void> adopt_blob(const Sha256Digest& digest, const std::string& path);
  Result<void> check_doubtful(const BlobRow& row, const std::string& path, std::uint64_t size);
  Result<void> correct_row(const Sha256Digest& digest);
  Fix move_out(const Sha256Digest& digest, const std::string& cause);
  bool has_blob(const Sha256Digest& digest) const;

  // fsck_records.cpp
  void save_record(std::string_view id, const std::string& path, const std::string& problem,
                   const std::string& text, std::optional<UnixTime> time = std::nullopt);

  // fsck_lost.cpp
  Result<void> check_damaged();
  Result<void> check_lost_blob(const BlobRow& row);
  Result<void> reload_row(const Sha256Digest& digest);

  // fsck_folders.cpp
  void check_folders();
  void check_folder(const std::string& path, int depth, std::string_view suffix);
  void check_writable(const std::string& path);
  void check_pieces();
  void check_standing();
  /// What a folder holds; nothing where it cannot be listed, which is a finding.
  std::vector<FolderEntry> entries(const std::string& path);
  /// Paths of files so many folders below, as list_manifests() gives them.
  std::vector<std::string> files_below(const std::string& top, int depth);

  // fsck_manifests.cpp
  Result<void> check_snapshots();
  Result<void> check_snapshot_row(const SnapshotInfo& info);
  Result<void> check_strange_row(const SnapshotInfo& info, const std::string& wrong);
  void check_newer_manifest(const std::string& path, const Snapshot& row, const Snapshot& manifest,
                            const Fix& rewrite);
  Result<void> make_view(const Snapshot& snapshot);
  Result<void> check_snapshot_files();
  Result<bool> is_listed(const std::string& path);
  Result<void> check_snapshot_manifest(const std::string& path);
  std::vector<std::string> view_folders();
  Result<void> check_views();
  Result<void> check_view(const RepoId& repo, const GitOid& commit, const std::string& path);
  Result<void> check_variants();
  Result<void> check_variant_row(const Variant& variant);
  Result<void> check_variant_manifest(const std::string& path);

  // fsck_names.cpp
  Result<void> check_names();
  Result<void> check_repos();
  Result<void> check_strange_repo(const std::string& path, const std::string& wrong);
  Result<void> check_pins();
  Result<void> check_root();
  void check_reserve();

  // fsck_access.cpp
  Result<void> check_access();
  Result<void> check_access_below(const std::string& folder);
  void check_entry(const std::string& path, bool folder);

  // fsck_links.cpp
  Result<void> check_links();
  std::set<std::string> waiting_files(const LinkRecord& record) const;
  Result<void> check_link_records(const std::vector<LinkRecord>& records);

  Store& store_;
  Store::State& state_;
  const FsckOptions& options_;
  Progress* progress_;
  FsckReport report_;
  std::set<std::string> bad_folders_;    ///< a finding each, once
  std::map<Sha256Digest, BlobRow> rows_; ///< of blobs, as they are now
};

} // namespace modeld::store
