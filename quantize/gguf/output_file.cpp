// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/output_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace modeld::quantize {
namespace {

/// Before the umask, as for any file that a tool makes.
constexpr mode_t k_mode = 0666;

Result<void> sync_folder(const std::filesystem::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail(from_errno(errno, fmt::format("opening '{}'", folder.string())));
  const int failed = fsync(fd) != 0 ? errno : 0;
  close(fd);
  // Some file systems cannot sync a folder; they have nothing to lose either.
  if (failed != 0 && failed != EINVAL) {
    return fail(from_errno(failed, fmt::format("syncing '{}'", folder.string())));
  }
  return {};
}

Result<void> check_target(const std::filesystem::path& path,
                          std::span<const std::filesystem::path> inputs, ExistingFile existing) {
  struct stat out {};
  if (stat(path.c_str(), &out) != 0) return {};
  for (const std::filesystem::path& input : inputs) {
    struct stat in {};
    if (stat(input.c_str(), &in) != 0) continue;
    if (in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
      return fail(
          Errc::conflict,
          fmt::format("writing '{}': it is the input file '{}'", path.string(), input.string()),
          "give the output another name");
    }
  }
  if (!S_ISREG(out.st_mode)) {
    return fail(Errc::invalid_argument,
                fmt::format("writing '{}': it is a {}; a new or a regular file is allowed",
                            path.string(), S_ISDIR(out.st_mode) ? "folder" : "device or pipe"),
                "give the name of a file");
  }
  if (existing == ExistingFile::refuse) {
    return fail(Errc::conflict, fmt::format("writing '{}': it exists already", path.string()),
                "remove that file first, or give another name");
  }
  return {};
}

tl::unexpected<Error> cannot_open(int why, const std::filesystem::path& path,
                                  const std::filesystem::path& folder) {
  if (why == ENOENT || why == ENOTDIR) {
    return fail(
        Errc::not_found,
        fmt::format("writing '{}': there is no folder '{}'", path.string(), folder.string()),
        "make the folder first");
  }
  return fail(from_errno(why, fmt::format("writing '{}'", path.string())));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

} // namespace

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

std::filesystem::path OutputFile::temporary_path() const {
  return folder_of(path_) / fmt::format(".{}.{}.part", path_.filename().string(), getpid());
}

Result<std::unique_ptr<OutputFile>>
OutputFile::create(const std::filesystem::path& path, std::span<const std::filesystem::path> inputs,
                   ExistingFile existing) {
  MODELD_TRY(check_target(path, inputs, existing));
  const std::filesystem::path folder = folder_of(path);
  std::unique_ptr<OutputFile> file(
      new OutputFile(path, open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, k_mode)));
  file->existing_ = existing;
  if (file->fd_ >= 0) return file;
  // EISDIR: a kernel without such files; EOPNOTSUPP: a file system without.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
    return cannot_open(errno, path, folder);
  }
  const std::filesystem::path temporary = file->temporary_path();
  file->fd_ = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, k_mode);
  if (file->fd_ < 0) return cannot_open(errno, path, folder);
  file->temporary_ = temporary;
  return file;
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return fail(from_errno(errno, fmt::format("writing '{}'", path_.string())));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    written_ += static_cast<std::uint64_t>(wrote);
  }
  start_writeback();
  return {};
}

/// The disk works while the processor does, and sync() has little left to wait for. A hint: where
/// it fails, sync() says why.
void OutputFile::start_writeback() {
  constexpr std::uint64_t k_bytes = std::uint64_t{16} << 20;
  if (written_ - on_the_way_ < k_bytes) return;
  (void)sync_file_range(fd_, static_cast<off_t>(on_the_way_),
                        static_cast<off_t>(written_ - on_the_way_), SYNC_FILE_RANGE_WRITE);
  on_the_way_ = written_;
}

Result<void> OutputFile::sync() {
  if (fsync(fd_) != 0) {
    return fail(from_errno(errno, fmt::format("syncing '{}'", path_.string())));
  }
  synced_ = true;
  return {};
}

/// Over an existing file only a rename goes, so the file without a name gets the temporary one
/// first.
Result<void> OutputFile::name_it() {
  const std::string itself = fmt::format("/proc/self/fd/{}", fd_);
  const auto link_as = [&itself](const std::filesystem::path& name) {
    return linkat(AT_FDCWD, itself.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  const auto cannot = [this](int why) {
    if (why == EEXIST) {
      return fail(Errc::conflict, fmt::format("writing '{}': it exists already", path_.string()));
    }
    return fail(from_errno(why, fmt::format("naming '{}'", path_.string())));
  };
  if (temporary_.empty()) {
    if (link_as(path_)) return {};
    if (errno != EEXIST || existing_ == ExistingFile::refuse) return cannot(errno);
    const std::filesystem::path temporary = temporary_path();
    unlink(temporary.c_str()); // of a process that had our number and was killed
    if (!link_as(temporary)) return cannot(errno);
    temporary_ = temporary;
  }
  if (existing_ == ExistingFile::refuse) {
    if (link(temporary_.c_str(), path_.c_str()) != 0) return cannot(errno);
    return {}; // the destructor removes the temporary name
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return cannot(errno);
  temporary_.clear();
  return {};
}

Result<void> OutputFile::commit() {
  if (!synced_) MODELD_TRY(sync());
  MODELD_TRY(name_it());
  if (close(std::exchange(fd_, -1)) != 0) {
    return fail(from_errno(errno, fmt::format("closing '{}'", path_.string())));
  }
  return sync_folder(folder_of(path_));
}

} // namespace modeld::quantize
