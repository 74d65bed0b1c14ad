// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/shared_root.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
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
  /// patience: how long a look at one may take without getting on before others do without it.
  static Result<std::unique_ptr<SharedRoots>> open(const std::vector<std::filesystem::path>& roots,
                                                   std::chrono::milliseconds patience);

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

  /// How each of them is, for people.
  std::vector<SharedStatus> status() const;

private:
  /// One root, and the turn to look at it. Where a look hangs (a network file system without its
  /// server), one thread hangs with it: others wait a while, and then go on as if it were not
  /// there.
  struct Entry {
    std::filesystem::path path;
    SharedRoot::Looks looks = std::make_shared<std::atomic<std::uint64_t>>(0);
    std::shared_ptr<const SharedRoot> root; ///< exchanged by whoever has the turn
    std::timed_mutex turn;
    std::atomic<bool> hangs{false};
  };
  class Visit;

  template <class Look>
  auto first(Look look) const -> decltype(look(std::declval<const SharedRoot&>()));
  template <class List>
  auto each(List list) const -> decltype(list(std::declval<const SharedRoot&>()));

  std::vector<std::unique_ptr<Entry>> roots_;
  std::chrono::milliseconds patience_{0};
};

/// Copies into our own store (sharing blocks where that works) what only a shared root has.
Result<void> bring_in(Store& store, const std::vector<Sha256Digest>& digests,
                      std::optional<std::uint32_t> payer = {});

} // namespace modeld::store
