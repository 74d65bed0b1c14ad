// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/guarded.hpp"
#include "store/disk.hpp"
#include "store/index.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace modeld::store {

/// One store that is only read, by its manifests alone. What a folder of manifests says is kept
/// while the folder is the same: every change of it is a rename into it or a removal, which changes
/// its time. So a list costs one look at each folder, and no manifest is read twice. Any thread; no
/// lock is held while the disk is looked at.
class SharedRoot {
public:
  /// Counts every look at the disk that came back: whether a long one gets on.
  using Looks = std::shared_ptr<std::atomic<std::uint64_t>>;
  /// `marker`: the text of its modeld.id when it was opened.
  SharedRoot(Disk disk, std::string marker, Looks looks)
      : disk_(std::move(disk)), marker_(std::move(marker)), looks_(std::move(looks)) {}

  const Disk& disk() const { return disk_; }
  const std::string& marker() const { return marker_; }
  /// Whether the same folder is still at its path, with its marker: an unmounted disk is no empty
  /// store.
  bool is_there() const;

  std::optional<RepoRow> find_repo(const RepoId& repo) const;
  /// Only a whole one: every file is there with its size.
  std::optional<Snapshot> find_snapshot(const RepoId& repo, const GitOid& commit) const;
  /// As they were whole when their manifests were read.
  std::vector<SnapshotInfo> list_snapshots() const;
  std::vector<RepoRow> list_repos() const;
  std::vector<Variant> list_variants() const;

private:
  /// Device, inode and times of a folder; nothing where it is not there.
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t mtime_ns = 0;
    std::int64_t ctime_ns = 0;

    bool operator==(const Identity&) const = default;
  };
  struct Folder {
    std::optional<Identity> identity; ///< nothing: read it again next time
    std::vector<std::string> folders; ///< paths
    std::vector<SnapshotInfo> snapshots;
    std::optional<RepoRow> repo;
    std::vector<Variant> variants;
  };

  std::optional<Identity> identify(const std::string& path) const;
  /// What is kept of a folder, or what `read` makes of it now.
  template <class Read>
  std::shared_ptr<const Folder> folder(const std::string& path, Read read) const;
  std::shared_ptr<const Folder> folders_in(const std::string& path) const;
  std::shared_ptr<const Folder> repo_folder(const std::string& path) const;
  std::vector<std::shared_ptr<const Folder>> repo_folders() const;
  std::optional<Snapshot> read_snapshot(const std::string& path) const;
  bool has_blob(const Sha256Digest& digest, std::uint64_t size) const;

  Disk disk_;
  std::string marker_;
  Looks looks_;
  mutable Guarded<std::map<std::string, std::shared_ptr<const Folder>>> kept_;
};

} // namespace modeld::store
