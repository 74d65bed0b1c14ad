// SPDX-License-Identifier: Apache-2.0
#include "store/plain_view.hpp"

#include "store/layout.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

namespace modeld::store {
namespace {

/// Whether a hard link failed in a way that a symbolic link can go around.
bool refuses_hard_links(const Error& error) {
  return error.sys == EPERM || error.sys == EMLINK || error.sys == EXDEV ||
         error.sys == EOPNOTSUPP || error.sys == ENOSYS;
}

/// "../" for each folder in the final path, so that the link holds wherever the root is mounted.
std::string relative_target(const std::string& final_path, const Sha256Digest& digest) {
  std::string target;
  for (auto depth = std::count(final_path.begin(), final_path.end(), '/'); depth > 0; --depth) {
    target += "../";
  }
  return target + layout::blob(digest);
}

/// Links a blob at `path`; final_path is where it will be once its folder is renamed.
Result<void> link_blob(const Disk& disk, const Sha256Digest& digest, const std::string& path,
                       const std::string& final_path) {
  auto linked = disk.link(layout::blob(digest), path);
  if (linked || !refuses_hard_links(linked.error())) return linked;
  return disk.symlink(relative_target(final_path, digest), path);
}

Result<void> fill(const Disk& disk, const std::string& folder, const std::string& final_folder,
                  const std::string& path, const Sha256Digest& digest,
                  std::set<std::string>& folders) {
  const std::string at = folder + '/' + path;
  MODELD_TRY(disk.make_folders(folder_of(at)));
  folders.insert(folder_of(at));
  return link_blob(disk, digest, at, final_folder + '/' + path);
}

Result<void> put_in_place(const Disk& disk, const std::string& made, const std::string& place) {
  MODELD_TRY(disk.make_folders(folder_of(place)));
  if (!disk.exists(place)) {
    MODELD_TRY(disk.rename(made, place));
    return disk.sync_folder(folder_of(place));
  }
  if (auto swapped = disk.exchange(made, place); !swapped) {
    if (swapped.error().code != Errc::unsupported) return swapped;
    MODELD_TRY(disk.remove_tree(place));
    MODELD_TRY(disk.rename(made, place));
    return disk.sync_folder(folder_of(place));
  }
  MODELD_TRY(disk.sync_folder(folder_of(place)));
  return disk.remove_tree(made);
}

bool same_inode(const Disk& disk, const std::string& one, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return fstatat(disk.fd(), one.c_str(), &a, 0) == 0 &&
         fstatat(disk.fd(), other.c_str(), &b, 0) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

} // namespace

Result<void> build_plain_view(const Disk& disk, const Snapshot& snapshot,
                              const std::vector<Variant>& variants, const std::string& temporary) {
  const std::string place = layout::view(snapshot.repo, snapshot.commit);
  MODELD_TRY(disk.remove_tree(temporary));
  MODELD_TRY(disk.make_folders(temporary));
  std::set<std::string> folders{temporary};
  for (const SnapshotFile& file : snapshot.files) {
    MODELD_TRY(fill(disk, temporary, place, file.path, file.sha256, folders));
  }
  for (const Variant& variant : variants) {
    if (snapshot.find(variant.file_name) != nullptr) continue;
    MODELD_TRY(fill(disk, temporary, place, variant.file_name, variant.result, folders));
  }
  for (const std::string& folder : folders) {
    MODELD_TRY(disk.sync_folder(folder));
  }
  return put_in_place(disk, temporary, place);
}

Result<void> link_in_view(const Disk& disk, const RepoId& repo, const GitOid& commit,
                          const std::string& path, const Sha256Digest& blob,
                          const std::string& temporary) {
  const std::string place = layout::view(repo, commit) + '/' + path;
  if (same_inode(disk, layout::blob(blob), place)) return {};
  MODELD_TRY(disk.make_folders(folder_of(place)));
  MODELD_TRY(link_blob(disk, blob, temporary, place));
  MODELD_TRY(disk.rename(temporary, place));
  return disk.sync_folder(folder_of(place));
}

Result<void> link_variant(const Disk& disk, const Variant& variant, const std::string& temporary) {
  return link_in_view(disk, variant.repo, variant.commit, variant.file_name, variant.result,
                      temporary);
}

Result<void> unlink_variant(const Disk& disk, const Variant& variant) {
  const std::string folder = layout::view(variant.repo, variant.commit);
  const std::string place = folder + '/' + variant.file_name;
  // The name may belong to a newer variant by now.
  if (!same_inode(disk, layout::blob(variant.result), place)) return {};
  MODELD_TRY(disk.unlink(place));
  remove_empty_folders(disk, folder_of(place), layout::k_views);
  return {};
}

bool plain_view_complete(const Disk& disk, const Snapshot& snapshot) {
  const std::string place = layout::view(snapshot.repo, snapshot.commit);
  return disk.exists(place) &&
         std::all_of(snapshot.files.begin(), snapshot.files.end(), [&](const SnapshotFile& file) {
           return same_inode(disk, layout::blob(file.sha256), place + '/' + file.path);
         });
}

bool variant_is_shown(const Disk& disk, const Variant& variant) {
  return same_inode(disk, layout::blob(variant.result),
                    layout::view(variant.repo, variant.commit) + '/' + variant.file_name);
}

bool is_blob_link(const Disk& disk, const std::string& path) {
  struct stat info {};
  if (fstatat(disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (S_ISREG(info.st_mode)) return (info.st_mode & 0222) == 0;
  std::error_code ec;
  return S_ISLNK(info.st_mode) &&
         std::filesystem::read_symlink(disk.root() / path, ec).string().find(layout::k_blobs) !=
             std::string::npos;
}

void remove_empty_folders(const Disk& disk, std::string path, const std::string& stop) {
  const auto is_below = [&stop](const std::string& folder) {
    return folder != stop && folder != "." && (stop == "." || folder.starts_with(stop));
  };
  while (is_below(path)) {
    if (!disk.remove_folder(path)) return;
    path = folder_of(path);
  }
}

} // namespace modeld::store
