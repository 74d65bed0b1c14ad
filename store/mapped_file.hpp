// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <filesystem>
#include <span>

namespace modeld::store {

/// A regular file mapped read-only. Move-only owner of the mapping. A file that somebody truncates
/// under us raises SIGBUS on access: map untrusted files only in a worker process.
class MappedFile {
public:
  /// io where it is not a regular file. An empty file gives an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Gives the pages back; reading them again maps them again.
  void trim() const;

private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace modeld::store
