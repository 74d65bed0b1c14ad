// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld {

/// The files of one repository or folder, by relative path, as read-only bytes. What reads a model
/// (validation, conversion) sees only this, so it runs the same over a folder, over blobs in the
/// store and over memory in a test.
class FileSet {
public:
  struct Entry {
    std::string path; ///< relative, '/' between parts
    std::uint64_t size = 0;
  };

  FileSet() = default;
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  virtual ~FileSet() = default;

  /// The last part of the folder's or repository's name; general.name comes from it.
  virtual std::string_view name() const = 0;
  /// Every file, sorted by path bytewise.
  virtual const std::vector<Entry>& entries() const = 0;
  /// The bytes of one file, valid as long as the set. Maps on first use; may be called from any
  /// thread. not_found where there is no such path.
  virtual Result<std::span<const std::byte>> bytes(std::string_view path) const = 0;
  /// Lets bytes that were read leave this process's memory; what is read again is mapped again. A
  /// hint, for any thread, also while others read.
  virtual void trim() const {}

  bool contains(std::string_view path) const;
};

} // namespace modeld
