// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/gguf.hpp"
#include "validate/repository.hpp"
#include "validate/safetensors.hpp"
#include "validate/shard_index.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::validate {

/// A file that was looked at by itself. Private to this folder.
struct FileState {
  CheckedFile checked;
  std::uint64_t size = 0;
  std::optional<SafetensorsHeader> safetensors; ///< accepted
  std::optional<GgufHeader> gguf;               ///< accepted
  bool unsafe = false;                          ///< PK-01
};

/// Looks at one file by name and content.
FileState check_single_file(const FileSet& files, const FileSet::Entry& entry,
                            const CheckOptions& options);

/// Findings for any file of the set, filed under it.
class FindingsByFile {
public:
  explicit FindingsByFile(std::vector<FileState>& files);
  /// Sorts a report's findings to their files; what has no file of its own goes to ".".
  void take(Report report);
  FileState* find(std::string_view path);
  std::optional<FileState> whole_set() { return std::move(whole_); }

private:
  std::vector<FileState>& files_;
  std::map<std::string_view, std::size_t> by_path_;
  std::optional<FileState> whole_;
};

} // namespace modeld::validate
