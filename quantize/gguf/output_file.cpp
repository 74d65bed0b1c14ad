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

Result<void> refuse_inputs(const std::filesystem::path& path,
                           std::span<const std::filesystem::path> inputs) {
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
  return {};
}

} // namespace

OutputFile::OutputFile(std::filesystem::path path, std::filesystem::path temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Result<std::unique_ptr<OutputFile>>
OutputFile::create(const std::filesystem::path& path,
                   std::span<const std::filesystem::path> inputs) {
  MODELD_TRY(refuse_inputs(path, inputs));
  std::filesystem::path folder = path.parent_path();
  if (folder.empty()) folder = ".";
  const std::filesystem::path temporary =
      folder / fmt::format(".{}.{}.part", path.filename().string(), getpid());
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, k_mode);
  if (fd < 0) {
    const int why = errno;
    if (why == ENOENT) {
      return fail(
          Errc::not_found,
          fmt::format("writing '{}': there is no folder '{}'", path.string(), folder.string()),
          "make the folder first");
    }
    return fail(from_errno(why, fmt::format("writing '{}'", path.string())));
  }
  return std::unique_ptr<OutputFile>(new OutputFile(path, temporary, fd));
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return fail(from_errno(errno, fmt::format("writing '{}'", path_.string())));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<void> OutputFile::commit() {
  if (fsync(fd_) != 0) {
    return fail(from_errno(errno, fmt::format("syncing '{}'", path_.string())));
  }
  if (close(std::exchange(fd_, -1)) != 0) {
    return fail(from_errno(errno, fmt::format("closing '{}'", path_.string())));
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return fail(from_errno(errno, fmt::format("naming '{}'", path_.string())));
  }
  temporary_.clear();
  const std::filesystem::path folder = path_.parent_path();
  return sync_folder(folder.empty() ? "." : folder);
}

} // namespace modeld::quantize
