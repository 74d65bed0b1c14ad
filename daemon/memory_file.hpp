// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/descriptor.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace modeld::daemon {

/// A file without a name, in memory: bytes that were never written take none, so a file of any size
/// of which only the beginning is known costs just that.
class MemoryFile {
public:
  static Result<MemoryFile> create();

  /// Writes at the end of what is there.
  Result<void> append(std::span<const std::byte> bytes);
  /// Zeros up to this size.
  Result<void> extend(std::uint64_t size);
  std::uint64_t size() const { return size_; }
  /// Another descriptor of it, for reading.
  Result<Descriptor> open() const;

private:
  explicit MemoryFile(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_;
  std::uint64_t size_ = 0;
};

} // namespace modeld::daemon
