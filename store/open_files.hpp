// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

namespace modeld::store {

/// A file, whatever its names.
struct Inode {
  dev_t device = 0;
  ino_t number = 0;

  auto operator<=>(const Inode&) const = default;
};

struct FileUser {
  std::int32_t pid = 0;
  std::string command; ///< /proc/PID/comm

  bool operator==(const FileUser&) const = default;
};

struct OpenFiles {
  std::map<Inode, std::vector<FileUser>> users; ///< by pid; our own process is left out
  std::uint64_t unseen = 0;                     ///< processes that we may not look into
};

/// Which live processes have files with these numbers open or mapped, as far as /proc shows it to
/// us. Numbers alone, because a caller with a hundred thousand files need not look at each: the
/// answer names the few whole inodes that are to be compared.
OpenFiles find_open_files(const std::unordered_set<ino_t>& numbers);

} // namespace modeld::store
