// SPDX-License-Identifier: Apache-2.0
#include "daemon/memory_file.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace modeld::daemon {

Result<MemoryFile> MemoryFile::create() {
  Descriptor file(::memfd_create("modeld", MFD_CLOEXEC));
  if (!file.valid()) return fail(from_errno(errno, "making a file in memory"));
  return MemoryFile(std::move(file));
}

Result<void> MemoryFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(from_errno(errno, "writing to a file in memory"));
    size_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> MemoryFile::extend(std::uint64_t size) {
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
    return fail(from_errno(errno, "extending a file in memory"));
  size_ = size;
  return {};
}

Result<Descriptor> MemoryFile::open() const {
  return open_for_reading(fmt::format("/proc/self/fd/{}", file_.get()));
}

} // namespace modeld::daemon
