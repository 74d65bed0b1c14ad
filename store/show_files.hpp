// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/disk.hpp"
#include "store/show.hpp"

#include <filesystem>
#include <string>

namespace modeld::store {

/// The path itself, or the nearest folder above it that is there.
std::filesystem::path existing_ancestor(std::filesystem::path path);

/// What is at a path where a shown file belongs.
enum class Found {
  nothing,
  equal, ///< what we would make, or the same bytes
  other,
};

/// Makes, compares and removes single shown files below one root.
class ShownFiles {
public:
  ShownFiles(Store& store, const Disk& root) : store_(store), root_(root) {}

  LinkedFile describe(const ShownFile& file, LinkForm form) const;
  Found look_at(const ShownFile& file) const;
  Result<void> make(const ShownFile& file, LinkForm form) const;
  /// Where it still is what we made; with folders that are empty then. False where it is not.
  Result<bool> remove(const LinkedFile& file) const;
  /// Makes a blob's file again that is gone or a dead link, where the blob is here. False where
  /// there was nothing to do, or nothing that can be done.
  Result<bool> mend(const LinkedFile& file) const;
  /// Removes a second name of a blob, or a symbolic link to it: what would show its damage.
  Result<bool> withdraw(const LinkedFile& file) const;
  /// Empty where it still is what we made.
  std::string problem(const LinkedFile& file) const;

private:
  std::string relative(const std::string& absolute) const;
  bool is_blob(const std::string& path, const Sha256Digest& digest) const;
  Result<void> make_copy(const Sha256Digest& blob, const std::string& path, LinkForm form) const;

  Store& store_;
  const Disk& root_;
};

} // namespace modeld::store
