// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/fsck.hpp"
#include "store/index.hpp"
#include "store/state.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace modeld::store {

/// One run of fsck: what the parts share. Single thread.
class FsckRun {
public:
  FsckRun(Store& store, const FsckOptions& options, Progress* progress)
      : store_(store), state_(store.internals()), options_(options), progress_(progress) {}

  Result<FsckReport> run();

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
  Result<void> check_lost(const BlobRow& row);
  bool has_blob(const Sha256Digest& digest) const;

  // fsck_manifests.cpp
  Result<void> check_snapshots();
  Result<void> check_snapshot_row(const SnapshotInfo& info);
  void check_newer_manifest(const std::string& path, const Snapshot& row, const Snapshot& manifest,
                            const Fix& rewrite);
  Result<void> make_view(const Snapshot& snapshot);
  Result<void> check_snapshot_files();
  Result<bool> is_listed(const std::string& path);
  Result<void> check_snapshot_manifest(const std::string& path);
  Result<void> check_views();
  Result<void> check_view(const RepoId& repo, const GitOid& commit, const std::string& path);
  Result<void> check_variants();
  Result<void> check_variant_row(const Variant& variant);
  Result<void> check_variant_manifest(const std::string& path);

  // fsck_names.cpp
  Result<void> check_names();
  Result<void> check_repos();
  Result<void> check_pins();
  Result<void> check_root();

  // fsck_links.cpp
  Result<void> check_links();
  Result<void> check_link_records(const std::vector<LinkRecord>& records);

  Store& store_;
  Store::State& state_;
  const FsckOptions& options_;
  Progress* progress_;
  FsckReport report_;
  std::map<Sha256Digest, BlobRow> rows_; ///< of blobs, as they are now
};

} // namespace modeld::store
