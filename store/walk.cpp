// SPDX-License-Identifier: Apache-2.0
#include "store/manifests.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace modeld::store {

bool leads_to_folder(const Disk& disk, const std::string& path, const FolderEntry& entry) {
  struct stat info {};
  return entry.folder ||
         (entry.link && fstatat(disk.fd(), path.c_str(), &info, 0) == 0 && S_ISDIR(info.st_mode));
}

namespace {

Result<void> walk(const Disk& disk, const std::string& folder, int depth, bool folders,
                  std::vector<std::string>& out) {
  MODELD_ASSIGN(const auto entries, disk.list(folder));
  for (const FolderEntry& entry : entries) {
    const std::string path = folder + '/' + entry.name;
    const bool is_folder = leads_to_folder(disk, path, entry);
    if (depth > 0 && is_folder) {
      MODELD_TRY(walk(disk, path, depth - 1, folders, out));
    } else if (depth == 0 && is_folder == folders) {
      out.push_back(path);
    }
  }
  return {};
}

Result<void> walk_tree(const Disk& disk, const std::string& folder, const std::string& below,
                       std::vector<std::string>& out) {
  MODELD_ASSIGN(const auto entries, disk.list(folder));
  for (const FolderEntry& entry : entries) {
    const std::string path = below.empty() ? entry.name : below + '/' + entry.name;
    if (entry.folder) {
      MODELD_TRY(walk_tree(disk, folder + '/' + entry.name, path, out));
    } else {
      out.push_back(path);
    }
  }
  return {};
}

} // namespace

Result<std::vector<std::string>> list_manifests(const Disk& disk, const std::string& top,
                                                int depth) {
  std::vector<std::string> paths;
  MODELD_TRY(walk(disk, top, depth, false, paths));
  return paths;
}

Result<std::vector<std::string>> list_folders(const Disk& disk, const std::string& top, int depth) {
  std::vector<std::string> paths;
  MODELD_TRY(walk(disk, top, depth - 1, true, paths));
  return paths;
}

Result<std::vector<std::string>> list_tree(const Disk& disk, const std::string& folder) {
  std::vector<std::string> paths;
  MODELD_TRY(walk_tree(disk, folder, {}, paths));
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<RepoId> repo_of_folder(const std::string& folder) {
  return RepoId::parse(folder.starts_with("-/") ? folder.substr(2) : folder);
}

} // namespace modeld::store
