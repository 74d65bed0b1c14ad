// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_files.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace modeld::daemon {

WorkerFiles::WorkerFiles(WorkerChannel& channel, std::string name, std::vector<Entry> entries)
    : channel_(channel), name_(std::move(name)), entries_(std::move(entries)) {}

WorkerFiles::~WorkerFiles() {
  for (const auto& [index, bytes] : mapped_) {
    if (!bytes.empty()) ::munmap(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
}

Result<std::span<const std::byte>> WorkerFiles::bytes(std::string_view path) const {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), path,
                       [](const Entry& entry, std::string_view p) { return entry.path < p; });
  if (at == entries_.end() || at->path != path) {
    return fail(Errc::not_found, fmt::format("reading '{}': no such file", path));
  }
  const auto index = static_cast<std::size_t>(at - entries_.begin());
  const std::lock_guard lock(mutex_);
  const auto known = mapped_.find(index);
  if (known != mapped_.end()) return known->second;
  MODELD_ASSIGN(const auto mapped, map(index));
  mapped_.emplace(index, mapped);
  return mapped;
}

void WorkerFiles::trim() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [index, bytes] : mapped_) {
    if (!bytes.empty()) {
      ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_DONTNEED);
    }
  }
}

Result<std::span<const std::byte>> WorkerFiles::map(std::size_t index) const {
  const Entry& entry = entries_[index];
  const auto number = static_cast<std::uint32_t>(index);
  const std::array<std::byte, 4> question{
      static_cast<std::byte>(number), static_cast<std::byte>(number >> 8U),
      static_cast<std::byte>(number >> 16U), static_cast<std::byte>(number >> 24U)};
  MODELD_TRY(channel_.send(Packet::open, question));
  MODELD_ASSIGN(const auto answer, channel_.receive());
  if (!answer || answer->kind != Packet::file || !answer->descriptor.valid()) {
    return fail(Errc::io, fmt::format("reading '{}': the daemon does not give it", entry.path));
  }
  struct stat status {};
  if (::fstat(answer->descriptor.get(), &status) != 0) {
    return fail(from_errno(errno, fmt::format("reading '{}'", entry.path)));
  }
  if (static_cast<std::uint64_t>(status.st_size) != entry.size) {
    return fail(Errc::corrupt, fmt::format("reading '{}': it has {} bytes, expected {}", entry.path,
                                           status.st_size, entry.size));
  }
  if (entry.size == 0) return std::span<const std::byte>{};
  void* address = ::mmap(nullptr, static_cast<std::size_t>(entry.size), PROT_READ, MAP_SHARED,
                         answer->descriptor.get(), 0);
  if (address == MAP_FAILED) { // NOLINT: the C library's macro
    return fail(from_errno(errno, fmt::format("mapping '{}'", entry.path)));
  }
  return std::span(static_cast<const std::byte*>(address), static_cast<std::size_t>(entry.size));
}

} // namespace modeld::daemon
