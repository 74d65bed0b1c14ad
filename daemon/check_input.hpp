// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/descriptor.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"
#include "store/folder_files.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// Files to be checked: a folder with all that is in it, or one file with the parts that belong to
/// it (the other parts of a split, the shards of an index).
class CheckInput {
public:
  /// not_found where there is nothing. Anything that is neither a folder nor a regular file is
  /// malformed (rule GN-01).
  static Result<CheckInput> open(const std::filesystem::path& path);

  const FileSet& files() const { return *files_; }
  /// What lies in the folder and is no file that can be read (rule GN-01).
  const std::vector<store::LeftOut>& left_out() const { return left_out_; }
  /// A file of the set, by its place in entries(), for reading.
  Result<Descriptor> open_file(std::size_t index) const;
  /// A path of the set as the user would write it.
  std::string shown(std::string_view path) const;
  /// Files that are not what they were when the input was opened: size, time or inode (GN-07).
  std::vector<std::string> changed() const;

private:
  /// What tells a file from its successor.
  struct Stamp {
    bool there = false;
    std::uint64_t size = 0;
    ino_t inode = 0;
    timespec modified{};

    bool operator==(const Stamp& other) const;
  };
  static Stamp stamp(const std::filesystem::path& path);

  std::unique_ptr<FileSet> files_;
  std::filesystem::path folder_;
  std::string argument_; ///< as given, for messages; of a folder
  std::vector<Stamp> stamps_;
  std::vector<store::LeftOut> left_out_;
};

} // namespace modeld::daemon
