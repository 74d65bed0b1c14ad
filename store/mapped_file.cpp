// SPDX-License-Identifier: Apache-2.0
#include "store/mapped_file.hpp"

#include "store/fd.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace modeld::store {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO in a hostile folder must not make us wait for a writer.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string doing = fmt::format("mapping '{}'", path.string());
  if (!fd) return fail(from_errno(errno, doing));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return fail(from_errno(errno, doing));
  if (!S_ISREG(info.st_mode)) return fail(Errc::io, fmt::format("{}: not a regular file", doing));
  MappedFile file;
  file.size_ = static_cast<std::size_t>(info.st_size);
  if (file.size_ == 0) return file;
  void* data = mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    file.size_ = 0;
    return fail(from_errno(errno, doing));
  }
  file.data_ = static_cast<const std::byte*>(data);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::trim() const {
  if (data_ != nullptr) madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

} // namespace modeld::store
