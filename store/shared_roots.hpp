// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/index.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

class Store;

/// Stores that belong to others and lie below ours, read only: a shared disk, a baked image. What
/// ours has not is looked for there, in order. They are read by their manifests alone, so whoever
/// owns one may go on writing to it. Each look begins with the marker: a file system that is not
/// mounted any more is never an empty store. Any thread.
class SharedRoots {
public:
  /// not_found for a folder that is missing or has no marker, with what to do.
  static Result<std::unique_ptr<SharedRoots>> open(const std::vector<std::filesystem::path>& roots);

  bool empty() const { return roots_.empty(); }
  std::optional<Ref> find_ref(const RepoId& repo, std::string_view revision) const;
  std::optional<RepoRow> find_repo(const RepoId& repo) const;
  /// Only whole ones: every file is there with its size.
  std::optional<Snapshot> find_snapshot(const RepoId& repo, const GitOid& commit) const;
  std::optional<Variant> find_variant(const Sha256Digest& key) const;
  std::optional<Variant> find_variant(const RepoId& repo, const GitOid& commit,
                                      std::string_view recipe, std::string_view converter) const;
  std::vector<SnapshotInfo> list_snapshots() const;
  std::vector<Variant> list_variants() const;
  std::vector<Ref> list_refs() const;
  /// Where the bytes of a blob are, and how many.
  struct Place {
    std::filesystem::path path;
    std::uint64_t size = 0;
  };
  std::optional<Place> find_blob(const Sha256Digest& digest) const;
  /// A path below a root, where it is there.
  std::optional<std::filesystem::path> find_path(const std::string& relative) const;

private:
  struct Root {
    Disk disk;
    std::string id; ///< of its marker when we started
  };
  /// Variants by file, read again when the folder changed.
  struct Variants {
    std::int64_t mtime_ns = 0;
    std::vector<Variant> all;
  };

  bool is_there(const Root& root) const;
  template <class Look>
  auto first(Look look) const -> decltype(look(std::declval<const Root&>()));
  std::optional<Snapshot> read_snapshot(const Root& root, const std::string& path) const;
  static bool has_blob(const Root& root, const Sha256Digest& digest, std::uint64_t size);
  std::vector<Variant> variants_of(const Root& root) const;

  std::vector<Root> roots_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Variants> variants_; ///< by the root's path
};

/// Copies into our own store (sharing blocks where that works) what only a shared root has.
Result<void> bring_in(Store& store, const std::vector<Sha256Digest>& digests);

} // namespace modeld::store
