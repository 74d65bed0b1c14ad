// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "store/fd.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

enum class DiskOp {
  create,
  write,
  sync,
  write_out, ///< of a part, which nothing promises to survive a power cut
  sync_folder,
  rename,
  link,
  symlink,
  unlink,
  make_folder,
  remove_folder,
  mode,
  truncate,
  allocate,
  clone,
  sql, ///< one step of a statement that writes; path is its text
};

/// One change of the disk. Paths are absolute.
struct DiskEvent {
  DiskOp op;
  std::string path;
  std::string to;           ///< rename, link, clone: the new name; symlink: the target
  std::uint64_t offset = 0; ///< write, write_out
  std::uint64_t size = 0;   ///< write, write_out, truncate, allocate
};

/// Sees every change of the disk that the store makes, before and after. Tests fail or end the
/// process here; nobody else needs one. Called from any thread.
class DiskWatcher {
public:
  DiskWatcher() = default;
  DiskWatcher(const DiskWatcher&) = delete;
  DiskWatcher& operator=(const DiskWatcher&) = delete;
  virtual ~DiskWatcher() = default;

  /// 0 to go on; an errno to fail with instead. For a write, `event.size` may be lowered to make it
  /// short.
  virtual int before(DiskEvent& event) = 0;
  virtual void after(const DiskEvent& event) = 0;
};

struct FolderEntry {
  std::string name;
  bool folder = false;
  bool link = false;
  ino_t inode = 0; ///< as the folder says; some layered file systems say another than stat does
};

/// The one door to the disk for everything that changes it: relative paths below one folder that is
/// kept open. Errors carry errno and name the path. Any thread.
class Disk {
public:
  /// The folder must exist.
  static Result<Disk> open(const std::filesystem::path& root, DiskWatcher* watcher = nullptr);

  const std::filesystem::path& root() const { return root_; }
  int fd() const { return fd_.get(); }
  DiskWatcher* watcher() const { return watcher_; }
  /// Folders get this mode whatever the umask is, and keep an inherited group bit. 0: as umask
  /// says.
  void set_folder_mode(std::uint32_t mode) { folder_mode_ = mode; }
  /// What is made from now on belongs to this group before it has its name or its mode, and folders
  /// hand it on.
  void set_group(std::uint32_t gid) { group_ = gid; }

  // ---- reading
  Result<Fd> open_read(const std::string& path) const; ///< io for a symbolic link
  Result<std::string> read_text(const std::string& path, std::uint64_t limit) const;
  bool exists(const std::string& path) const;
  /// Size of a regular file; not_found, or io where it is something else.
  Result<std::uint64_t> size_of(const std::string& path) const;
  /// Sorted by name; without "." and "..". not_found where there is no such folder.
  Result<std::vector<FolderEntry>> list(const std::string& path) const;

  // ---- writing
  Result<Fd> create(const std::string& path, std::uint32_t mode) const;     ///< must not be there
  Result<Fd> open_write(const std::string& path, std::uint32_t mode) const; ///< made if missing
  Result<void> write(const Fd& file, const std::string& path, std::span<const std::byte> bytes,
                     std::uint64_t offset) const;
  Result<void> sync(const Fd& file, const std::string& path) const;
  /// Waits until a part is on the disk, and takes it out of the page cache. After an error those
  /// bytes are lost: no later sync tells of it.
  Result<void> write_out(const Fd& file, const std::string& path, std::uint64_t offset,
                         std::uint64_t length) const;
  Result<void> sync_folder(const std::string& path) const;
  Result<void> set_mode(const Fd& file, const std::string& path, std::uint32_t mode) const;
  Result<void> set_mode(const std::string& path, std::uint32_t mode) const;
  Result<void> set_time(const std::string& path, std::int64_t seconds) const; ///< of last change
  /// Owner stays; of a folder with the bit that hands the group on, where the system lets us set
  /// it.
  Result<void> set_access(const std::string& path, std::uint32_t gid, std::uint32_t mode) const;
  Result<void> truncate(const Fd& file, const std::string& path, std::uint64_t size) const;
  Result<void> allocate(const Fd& file, const std::string& path, std::uint64_t size) const;
  /// Shares the blocks of another file (FICLONE); unsupported where the file system cannot.
  Result<void> clone(const Fd& source, const Fd& file, const std::string& path) const;
  Result<void> rename(const std::string& from, const std::string& to) const; ///< replaces
  /// conflict where `to` exists.
  Result<void> rename_new(const std::string& from, const std::string& to) const;
  /// Swaps two names; unsupported where the file system cannot.
  Result<void> exchange(const std::string& one, const std::string& other) const;
  Result<void> link(const std::string& from, const std::string& to) const;
  /// The same into another folder tree.
  Result<void> link_out(const std::string& from, const Disk& other, const std::string& to) const;
  Result<void> symlink(const std::string& target, const std::string& path) const;
  Result<void> unlink(const std::string& path) const; ///< fine where it is gone already
  Result<void>
  make_folders(const std::string& path) const; ///< with parents; each made one is synced
  Result<void> remove_folder(const std::string& path) const; ///< an empty one
  /// A folder with all in it, or a file; links are removed, not followed.
  Result<void> remove_tree(const std::string& path) const;

  /// Whole small file by a temporary one, synced and renamed; the folder is synced.
  Result<void> replace_file(const std::string& path, std::string_view text,
                            std::uint32_t mode) const;

private:
  Disk(std::filesystem::path root, Fd fd, DiskWatcher* watcher);

  std::string absolute(const std::string& path) const;
  int before(DiskEvent& event) const;
  Result<void> finish(int error, const DiskEvent& event, std::string_view doing) const;
  int give(const std::string& path, std::uint32_t gid, std::uint32_t mode) const;
  template <class Call>
  Result<void> change(DiskEvent event, std::string_view doing, Call call) const;

  std::filesystem::path root_;
  Fd fd_;
  DiskWatcher* watcher_ = nullptr;
  std::uint32_t folder_mode_ = 0;
  std::optional<std::uint32_t> group_;
};

/// The folder part of a relative path; "." for a plain name.
std::string folder_of(const std::string& path);

} // namespace modeld::store
