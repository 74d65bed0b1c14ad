// SPDX-License-Identifier: Apache-2.0
#include "store/shared_root.hpp"

#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/state.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

namespace modeld::store {
namespace {

constexpr std::uint64_t k_max_marker = 4096;
/// A folder that changed less than so long ago may change again without another time: the clocks of
/// file systems are coarse, and those of servers differ.
constexpr std::int64_t k_settled_ns = 3'000'000'000;

} // namespace

bool SharedRoot::is_there() const {
  // By path, not by the kept descriptor: that would still see what an unmounted disk had.
  struct stat by_path {};
  struct stat held {};
  if (::stat(disk_.root().c_str(), &by_path) != 0 || ::fstat(disk_.fd(), &held) != 0) return false;
  if (by_path.st_dev != held.st_dev || by_path.st_ino != held.st_ino) return false;
  const auto marker = disk_.read_text(layout::k_marker, k_max_marker);
  return marker && *marker == marker_;
}

std::optional<SharedRoot::Identity> SharedRoot::identify(const std::string& path) const {
  struct stat info {};
  const int rc = fstatat(disk_.fd(), path.c_str(), &info, 0);
  ++*looks_;
  if (rc != 0) return std::nullopt;
  return Identity{info.st_dev, info.st_ino, nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

template <class Read>
std::shared_ptr<const SharedRoot::Folder> SharedRoot::folder(const std::string& path,
                                                             Read read) const {
  const auto before = identify(path);
  {
    const auto kept = kept_.lock();
    const auto at = kept->find(path);
    if (at != kept->end() && before && at->second->identity == before) return at->second;
  }
  auto made = std::make_shared<Folder>(read());
  const bool settled = before && before == identify(path) &&
                       before->mtime_ns + k_settled_ns < std::int64_t{now()} * 1'000'000'000;
  if (settled) made->identity = before;
  const auto kept = kept_.lock();
  (*kept)[path] = made;
  return made;
}

std::shared_ptr<const SharedRoot::Folder> SharedRoot::folders_in(const std::string& path) const {
  return folder(path, [&] {
    Folder found;
    const auto entries = disk_.list(path);
    for (const FolderEntry& entry : entries ? *entries : std::vector<FolderEntry>{}) {
      if (entry.folder) found.folders.push_back(path + '/' + entry.name);
    }
    return found;
  });
}

std::shared_ptr<const SharedRoot::Folder> SharedRoot::repo_folder(const std::string& path) const {
  return folder(path, [&] {
    Folder found;
    const auto entries = disk_.list(path);
    for (const FolderEntry& entry : entries ? *entries : std::vector<FolderEntry>{}) {
      const std::string manifest = path + '/' + entry.name;
      if (entry.name == "repo.json") {
        const auto text = disk_.read_text(manifest, k_max_manifest);
        auto row = text ? RepoRow::from_json(*text) : fail(text.error());
        if (row && layout::repo_manifest(row->repo) == manifest) found.repo = *std::move(row);
        continue;
      }
      const auto snapshot = read_snapshot(manifest);
      if (!snapshot) continue;
      std::uint64_t absent_bytes = 0;
      for (const ListedFile& file : snapshot->absent) {
        absent_bytes += file.size;
      }
      found.snapshots.push_back({snapshot->repo, snapshot->commit, snapshot->files.size(),
                                 snapshot->bytes(), time_of(disk_, manifest), 0, false,
                                 snapshot->absent.size(), absent_bytes});
    }
    return found;
  });
}

std::vector<std::shared_ptr<const SharedRoot::Folder>> SharedRoot::repo_folders() const {
  std::vector<std::shared_ptr<const Folder>> all;
  for (const std::string& org : folders_in(layout::k_snapshots)->folders) {
    for (const std::string& repo : folders_in(org)->folders) {
      all.push_back(repo_folder(repo));
    }
  }
  return all;
}

bool SharedRoot::has_blob(const Sha256Digest& digest, std::uint64_t size) const {
  const auto found = disk_.size_of(layout::blob(digest));
  ++*looks_;
  return found && *found == size;
}

std::optional<Snapshot> SharedRoot::read_snapshot(const std::string& path) const {
  const auto text = disk_.read_text(path, k_max_manifest);
  ++*looks_;
  auto snapshot = text ? Snapshot::from_json(*text) : fail(text.error());
  if (!snapshot || layout::snapshot_manifest(snapshot->repo, snapshot->commit) != path) {
    return std::nullopt;
  }
  const bool whole =
      std::all_of(snapshot->files.begin(), snapshot->files.end(),
                  [this](const SnapshotFile& file) { return has_blob(file.sha256, file.size); });
  if (!whole) return std::nullopt;
  return *std::move(snapshot);
}

std::optional<RepoRow> SharedRoot::find_repo(const RepoId& repo) const {
  return repo_folder(folder_of(layout::repo_manifest(repo)))->repo;
}

std::optional<Snapshot> SharedRoot::find_snapshot(const RepoId& repo, const GitOid& commit) const {
  return read_snapshot(layout::snapshot_manifest(repo, commit));
}

std::vector<SnapshotInfo> SharedRoot::list_snapshots() const {
  std::vector<SnapshotInfo> all;
  for (const auto& folder : repo_folders()) {
    all.insert(all.end(), folder->snapshots.begin(), folder->snapshots.end());
  }
  return all;
}

std::vector<RepoRow> SharedRoot::list_repos() const {
  std::vector<RepoRow> all;
  for (const auto& folder : repo_folders()) {
    if (folder->repo) all.push_back(*folder->repo);
  }
  return all;
}

std::vector<Variant> SharedRoot::list_variants() const {
  return folder(layout::k_variants,
                [&] {
                  Folder found;
                  const auto paths = list_manifests(disk_, layout::k_variants, 0);
                  for (const std::string& path : paths ? *paths : std::vector<std::string>{}) {
                    const auto text = disk_.read_text(path, k_max_manifest);
                    auto variant = text ? Variant::from_json(*text) : fail(text.error());
                    if (variant && layout::variant_manifest(variant->key) == path &&
                        has_blob(variant->result, variant->size)) {
                      found.variants.push_back(*std::move(variant));
                    }
                  }
                  return found;
                })
      ->variants;
}

} // namespace modeld::store
