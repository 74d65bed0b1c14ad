// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// The bytes of a file; throws where there is none.
std::string read_file(const std::filesystem::path& path);

/// A repository in memory.
class MemoryFiles final : public FileSet {
public:
  explicit MemoryFiles(std::string name, std::map<std::string, std::string> files = {});
  /// Every file of a folder whose name matches; the folder's name is the set's name.
  static MemoryFiles from_folder(const std::filesystem::path& folder,
                                 std::uint64_t largest_file = UINT64_MAX);
  MemoryFiles(MemoryFiles&& other) noexcept;

  void put(std::string path, std::string text);
  void remove(const std::string& path);
  void rename(std::string name) { name_ = std::move(name); }

  std::string_view name() const override { return name_; }
  const std::vector<Entry>& entries() const override { return entries_; }
  Result<std::span<const std::byte>> bytes(std::string_view path) const override;

private:
  void list();

  std::string name_;
  std::map<std::string, std::string, std::less<>> files_;
  std::vector<Entry> entries_;
};

} // namespace modeld::test
