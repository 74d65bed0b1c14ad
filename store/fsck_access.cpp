// SPDX-License-Identifier: Apache-2.0
#include "store/fsck_run.hpp"
#include "store/layout.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

// Who may read what: the group and the modes that are configured. Modes of blobs are FS-06.

namespace modeld::store {
namespace {

constexpr mode_t k_mode_bits = 07777;

/// What nobody but the daemon opens: unfinished work, and what is out of the way.
bool is_private(const std::string& path) {
  return path == layout::k_tmp || path == layout::k_quarantine || path == layout::k_lock ||
         path == layout::k_reserve;
}

} // namespace

Result<void> FsckRun::check_access() {
  // The root's mode is its owner's matter, unless a group has to come in.
  if (state_.options.group) check_entry(".", true);
  return check_access_below("");
}

Result<void> FsckRun::check_access_below(const std::string& folder) {
  MODELD_TRY(check_cancel());
  const auto entries = state_.disk.list(folder.empty() ? "." : folder);
  if (!entries) return {}; // removed meanwhile
  for (const FolderEntry& entry : *entries) {
    const std::string path = folder.empty() ? entry.name : folder + '/' + entry.name;
    if (entry.link || is_private(path)) continue;
    check_entry(path, entry.folder);
    if (entry.folder) MODELD_TRY(check_access_below(path));
  }
  return {};
}

void FsckRun::check_entry(const std::string& path, bool folder) {
  struct stat info {};
  if (fstatat(state_.disk.fd(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!folder && !S_ISREG(info.st_mode)) return; // FS-09, FS-29
  // A second name of a blob is seen under its first.
  if (!folder && info.st_nlink > 1 && !path.starts_with(layout::k_blobs)) return;
  const std::uint32_t gid = state_.options.group.value_or(info.st_gid);
  const auto found_mode = static_cast<std::uint32_t>(info.st_mode & k_mode_bits);
  std::uint32_t mode = found_mode;
  if (folder) {
    const std::uint32_t inherits = state_.options.group ? S_ISGID : found_mode & S_ISGID;
    mode = state_.options.folder_mode | inherits;
  }
  if (info.st_gid == gid && found_mode == mode) return;
  found("FS-41", path,
        fmt::format("group {} and mode {:04o}, expected {} and {:04o}", info.st_gid, found_mode,
                    gid, mode),
        "set", [this, path, gid, mode] { return state_.disk.set_access(path, gid, mode); });
}

} // namespace modeld::store
