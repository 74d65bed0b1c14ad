// SPDX-License-Identifier: Apache-2.0
#include "store/disk.hpp"

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace modeld::store {
namespace {

constexpr uid_t k_same_owner = static_cast<uid_t>(-1);
constexpr mode_t k_mode_bits = 07777;

std::string temporary_name(const std::string& path) {
  static std::atomic<std::uint64_t> counter{0};
  return fmt::format("{}.{}.{}.tmp", path, getpid(), counter.fetch_add(1));
}

/// Repeats a call that a signal interrupted; returns 0 or an errno.
template <class Call>
int uninterrupted(Call call) {
  while (call() < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

/// For file systems whose folders do not tell.
unsigned char type_of(int folder, const char* name) {
  struct stat info {};
  if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return static_cast<unsigned char>(IFTODT(info.st_mode));
}

} // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Disk::Disk(std::filesystem::path root, Fd fd, DiskWatcher* watcher)
    : root_(std::move(root)), fd_(std::move(fd)), watcher_(watcher) {}

Result<Disk> Disk::open(const std::filesystem::path& root, DiskWatcher* watcher) {
  Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(from_errno(errno, fmt::format("opening folder '{}'", root.string())));
  return Disk(root, std::move(fd), watcher);
}

std::string Disk::absolute(const std::string& path) const {
  return path == "." ? root_.string() : (root_ / path).string();
}

int Disk::before(DiskEvent& event) const {
  return watcher_ == nullptr ? 0 : watcher_->before(event);
}

Result<void> Disk::finish(int error, const DiskEvent& event, std::string_view doing) const {
  if (error != 0) return fail(from_errno(error, fmt::format("{} '{}'", doing, event.path)));
  if (watcher_ != nullptr) watcher_->after(event);
  return {};
}

template <class Call>
Result<void> Disk::change(DiskEvent event, std::string_view doing, Call call) const {
  int error = before(event);
  if (error == 0) error = uninterrupted(call);
  return finish(error, event, doing);
}

Result<Fd> Disk::open_read(const std::string& path) const {
  // Nothing of ours is a symbolic link, and a pipe must not keep us waiting for a writer.
  Fd file(openat(fd_.get(), path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file) return file;
  if (errno == ELOOP) {
    return fail(Errc::io, fmt::format("opening '{}': it is a symbolic link", absolute(path)));
  }
  return fail(from_errno(errno, fmt::format("opening '{}'", absolute(path))));
}

Result<std::string> Disk::read_text(const std::string& path, std::uint64_t limit) const {
  MODELD_ASSIGN(const auto file, open_read(path));
  struct stat info {};
  if (fstat(file.get(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return fail(Errc::io, fmt::format("reading '{}': it is {}", absolute(path),
                                      S_ISDIR(info.st_mode) ? "a folder" : "no regular file"));
  }
  std::string text;
  std::array<char, 1U << 16> part{};
  for (;;) {
    const ssize_t n = ::read(file.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(from_errno(errno, fmt::format("reading '{}'", absolute(path))));
    if (n == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
    if (text.size() > limit) {
      return fail(Errc::malformed, fmt::format("reading '{}': longer than the {} bytes allowed",
                                               absolute(path), limit));
    }
  }
}

bool Disk::exists(const std::string& path) const {
  return faccessat(fd_.get(), path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::uint64_t> Disk::size_of(const std::string& path) const {
  struct stat info {};
  if (fstatat(fd_.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail(from_errno(errno, fmt::format("looking at '{}'", absolute(path))));
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(Errc::io, fmt::format("looking at '{}': not a regular file", absolute(path)));
  }
  return static_cast<std::uint64_t>(info.st_size);
}

Result<std::vector<FolderEntry>> Disk::list(const std::string& path) const {
  const int fd = openat(fd_.get(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fd < 0 ? nullptr : fdopendir(fd), closedir);
  std::vector<FolderEntry> entries;
  // Kind and number come from the folder's entry itself, without another look at the disk.
  while (folder != nullptr) {
    errno = 0;
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    const unsigned char type =
        entry->d_type != DT_UNKNOWN ? entry->d_type : type_of(fd, entry->d_name);
    entries.push_back({std::string(name), type == DT_DIR, type == DT_LNK, entry->d_ino});
  }
  if (errno != 0 || folder == nullptr) {
    return fail(from_errno(errno, fmt::format("listing '{}'", absolute(path))));
  }
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

Result<Fd> Disk::create(const std::string& path, std::uint32_t mode) const {
  Fd file;
  MODELD_TRY(change({DiskOp::create, absolute(path), {}, 0, 0}, "creating", [&] {
    file = Fd(openat(fd_.get(), path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    return file.get();
  }));
  if (!group_) return file;
  MODELD_TRY(change({DiskOp::mode, absolute(path), {}, 0, 0}, "setting the group of",
                    [&] { return fchown(file.get(), k_same_owner, *group_); }));
  return file;
}

Result<Fd> Disk::open_write(const std::string& path, std::uint32_t mode) const {
  if (!exists(path)) return create(path, mode);
  Fd file(openat(fd_.get(), path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return fail(from_errno(errno, fmt::format("opening '{}'", absolute(path))));
  return file;
}

Result<void> Disk::write(const Fd& file, const std::string& path, std::span<const std::byte> bytes,
                         std::uint64_t offset) const {
  while (!bytes.empty()) {
    DiskEvent event{DiskOp::write, absolute(path), {}, offset, bytes.size()};
    ssize_t n = 0;
    int error = before(event);
    if (error == EINTR) continue;
    if (error == 0) {
      error = uninterrupted([&] {
        n = pwrite(file.get(), bytes.data(), std::min<std::size_t>(event.size, bytes.size()),
                   static_cast<off_t>(offset));
        return n;
      });
    }
    event.size = n > 0 ? static_cast<std::uint64_t>(n) : 0;
    MODELD_TRY(finish(error, event, "writing"));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<void> Disk::sync(const Fd& file, const std::string& path) const {
  return change({DiskOp::sync, absolute(path), {}, 0, 0}, "syncing",
                [&] { return fsync(file.get()); });
}

Result<void> Disk::write_out(const Fd& file, const std::string& path, std::uint64_t offset,
                             std::uint64_t length) const {
  const auto from = static_cast<off64_t>(offset);
  const auto size = static_cast<off64_t>(length);
  MODELD_TRY(change({DiskOp::write_out, absolute(path), {}, offset, length}, "syncing", [&] {
    const int done = sync_file_range(file.get(), from, size,
                                     SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                         SYNC_FILE_RANGE_WAIT_AFTER);
    return done != 0 && errno == ENOSYS ? 0 : done; // then the sync at the end does it all
  }));
  [[maybe_unused]] const int ignored = posix_fadvise(file.get(), from, size, POSIX_FADV_DONTNEED);
  return {};
}

Result<void> Disk::sync_folder(const std::string& path) const {
  Fd folder(openat(fd_.get(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return fail(from_errno(errno, fmt::format("opening folder '{}'", absolute(path))));
  return change({DiskOp::sync_folder, absolute(path), {}, 0, 0}, "syncing folder",
                [&] { return fsync(folder.get()); });
}

Result<void> Disk::set_mode(const Fd& file, const std::string& path, std::uint32_t mode) const {
  return change({DiskOp::mode, absolute(path), {}, 0, 0}, "setting the mode of",
                [&] { return fchmod(file.get(), mode); });
}

Result<void> Disk::set_mode(const std::string& path, std::uint32_t mode) const {
  return change({DiskOp::mode, absolute(path), {}, 0, 0}, "setting the mode of",
                [&] { return fchmodat(fd_.get(), path.c_str(), mode, 0); });
}

Result<void> Disk::set_time(const std::string& path, std::int64_t seconds) const {
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, timespec{seconds, 0}};
  return change({DiskOp::mode, absolute(path), {}, 0, 0}, "setting the time of", [&] {
    return utimensat(fd_.get(), path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
  });
}

/// As a system call: 0, or -1 with errno.
int Disk::give(const std::string& path, std::uint32_t gid, std::uint32_t mode) const {
  struct stat info {};
  if (fstatat(fd_.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  if (info.st_gid != gid &&
      fchownat(fd_.get(), path.c_str(), k_same_owner, gid, AT_SYMLINK_NOFOLLOW) != 0) {
    return -1;
  }
  if ((info.st_mode & k_mode_bits) == mode) return 0;
  if (fchmodat(fd_.get(), path.c_str(), mode, 0) == 0) return 0;
  // systemd's RestrictSUIDSGID= forbids the bit. It only helps others: we give each file its group.
  if (errno != EPERM || (mode & S_ISGID) == 0) return -1;
  return fchmodat(fd_.get(), path.c_str(), mode & ~static_cast<mode_t>(S_ISGID), 0);
}

Result<void> Disk::set_access(const std::string& path, std::uint32_t gid,
                              std::uint32_t mode) const {
  return change({DiskOp::mode, absolute(path), {}, 0, 0}, "setting group and mode of",
                [&] { return give(path, gid, mode); });
}

Result<void> Disk::truncate(const Fd& file, const std::string& path, std::uint64_t size) const {
  return change({DiskOp::truncate, absolute(path), {}, 0, size}, "truncating",
                [&] { return ftruncate(file.get(), static_cast<off_t>(size)); });
}

Result<void> Disk::allocate(const Fd& file, const std::string& path, std::uint64_t size) const {
  return change({DiskOp::allocate, absolute(path), {}, 0, size}, "allocating space for", [&] {
    const int error = posix_fallocate(file.get(), 0, static_cast<off_t>(size));
    errno = error;
    return error == 0 ? 0 : -1;
  });
}

Result<void> Disk::clone(const Fd& source, const Fd& file, const std::string& path) const {
  auto ok = change({DiskOp::clone, absolute(path), {}, 0, 0}, "sharing blocks with",
                   [&] { return ioctl(file.get(), FICLONE, source.get()); });
  if (!ok && (ok.error().sys == EOPNOTSUPP || ok.error().sys == EXDEV || ok.error().sys == EINVAL ||
              ok.error().sys == ENOTTY)) {
    ok.error().code = Errc::unsupported;
  }
  return ok;
}

Result<void> Disk::rename(const std::string& from, const std::string& to) const {
  return change({DiskOp::rename, absolute(from), absolute(to), 0, 0}, "renaming",
                [&] { return renameat(fd_.get(), from.c_str(), fd_.get(), to.c_str()); });
}

Result<void> Disk::rename_new(const std::string& from, const std::string& to) const {
  auto ok = change({DiskOp::rename, absolute(from), absolute(to), 0, 0}, "renaming", [&] {
    const int rc = renameat2(fd_.get(), from.c_str(), fd_.get(), to.c_str(), RENAME_NOREPLACE);
    if (rc == 0 || (errno != EINVAL && errno != ENOSYS)) return rc;
    // A file system without the flag: a link never replaces either.
    if (linkat(fd_.get(), from.c_str(), fd_.get(), to.c_str(), 0) != 0) return -1;
    return unlinkat(fd_.get(), from.c_str(), 0);
  });
  if (!ok && ok.error().sys == EEXIST) ok.error().code = Errc::conflict;
  return ok;
}

Result<void> Disk::exchange(const std::string& one, const std::string& other) const {
  auto ok = change({DiskOp::rename, absolute(one), absolute(other), 1, 0}, "exchanging", [&] {
    return renameat2(fd_.get(), one.c_str(), fd_.get(), other.c_str(), RENAME_EXCHANGE);
  });
  if (!ok && (ok.error().sys == EINVAL || ok.error().sys == ENOSYS)) {
    ok.error().code = Errc::unsupported;
  }
  return ok;
}

Result<void> Disk::link(const std::string& from, const std::string& to) const {
  return change({DiskOp::link, absolute(from), absolute(to), 0, 0}, "linking",
                [&] { return linkat(fd_.get(), from.c_str(), fd_.get(), to.c_str(), 0); });
}

Result<void> Disk::link_out(const std::string& from, const Disk& other,
                            const std::string& to) const {
  return change({DiskOp::link, absolute(from), other.absolute(to), 0, 0}, "linking",
                [&] { return linkat(fd_.get(), from.c_str(), other.fd_.get(), to.c_str(), 0); });
}

Result<void> Disk::symlink(const std::string& target, const std::string& path) const {
  return change({DiskOp::symlink, absolute(path), target, 0, 0}, "making the symbolic link",
                [&] { return symlinkat(target.c_str(), fd_.get(), path.c_str()); });
}

Result<void> Disk::unlink(const std::string& path) const {
  if (!exists(path)) return {};
  return change({DiskOp::unlink, absolute(path), {}, 0, 0}, "removing",
                [&] { return unlinkat(fd_.get(), path.c_str(), 0); });
}

Result<void> Disk::make_folders(const std::string& path) const {
  if (path == "." || exists(path)) return {};
  const std::string parent = folder_of(path);
  MODELD_TRY(make_folders(parent));
  MODELD_TRY(change({DiskOp::make_folder, absolute(path), {}, 0, 0}, "making folder", [&] {
    const mode_t mode = folder_mode_ == 0 ? 0755 : folder_mode_;
    if (mkdirat(fd_.get(), path.c_str(), mode & 0777) != 0) return errno == EEXIST ? 0 : -1;
    struct stat info {};
    if (folder_mode_ == 0 || fstatat(fd_.get(), path.c_str(), &info, 0) != 0) return 0;
    if (group_) return give(path, *group_, folder_mode_ | S_ISGID);
    const mode_t wanted = folder_mode_ | (info.st_mode & S_ISGID);
    if ((info.st_mode & k_mode_bits) == wanted) return 0;
    return fchmodat(fd_.get(), path.c_str(), wanted, 0);
  }));
  return sync_folder(parent);
}

Result<void> Disk::remove_folder(const std::string& path) const {
  return change({DiskOp::remove_folder, absolute(path), {}, 0, 0}, "removing folder",
                [&] { return unlinkat(fd_.get(), path.c_str(), AT_REMOVEDIR); });
}

Result<void> Disk::remove_tree(const std::string& path) const {
  struct stat info {};
  if (fstatat(fd_.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
    return {};
  }
  if (!S_ISDIR(info.st_mode)) return unlink(path);
  MODELD_ASSIGN(const auto entries, list(path));
  for (const FolderEntry& entry : entries) {
    const std::string child = path + '/' + entry.name;
    if (entry.folder) {
      MODELD_TRY(remove_tree(child));
    } else {
      MODELD_TRY(unlink(child));
    }
  }
  return remove_folder(path);
}

Result<void> Disk::replace_file(const std::string& path, std::string_view text,
                                std::uint32_t mode) const {
  const std::string temporary =
      "tmp/" + std::filesystem::path(temporary_name(path)).filename().string();
  MODELD_ASSIGN(const auto file, create(temporary, 0600));
  auto ok = write(file, temporary, std::as_bytes(std::span(text)), 0);
  if (ok) ok = set_mode(file, temporary, mode);
  if (ok) ok = sync(file, temporary);
  if (ok) ok = rename(temporary, path);
  if (ok) return sync_folder(folder_of(path));
  // The error counts; a file left under tmp/ is swept at the next start.
  [[maybe_unused]] const auto ignored = unlink(temporary);
  return ok;
}

} // namespace modeld::store
