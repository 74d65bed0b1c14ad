// SPDX-License-Identifier: Apache-2.0
#include "store/open_files.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

using Numbers = std::unordered_set<ino_t>;

std::string command_of(const fs::path& process) {
  std::ifstream in(process / "comm");
  std::string name;
  std::getline(in, name);
  return name;
}

/// The inodes behind a process's descriptors. False where we may not look.
bool read_descriptors(const fs::path& process, const Numbers& wanted, std::set<Inode>& found) {
  std::error_code ec;
  fs::directory_iterator at(process / "fd", ec);
  for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
    struct stat info {};
    if (stat(at->path().c_str(), &info) != 0) continue;
    if (wanted.contains(info.st_ino)) found.insert({info.st_dev, info.st_ino});
  }
  return ec != std::errc::permission_denied;
}

/// Lines of /proc/PID/maps: "from-to perms offset major:minor inode path".
bool read_mappings(const fs::path& process, const Numbers& wanted, std::set<Inode>& found) {
  std::ifstream in(process / "maps");
  if (!in) return false;
  std::string line;
  while (std::getline(in, line)) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu", &major, &minor, &inode) != 3) continue;
    if (!wanted.contains(inode)) continue;
    found.insert({makedev(major, minor), inode});
    // Some file systems (btrfs, overlay) show another device here than stat does: ask the named
    // file too.
    const auto path_at = line.find('/');
    struct stat info {};
    if (path_at == std::string::npos || stat(line.c_str() + path_at, &info) != 0) continue;
    if (wanted.contains(info.st_ino)) found.insert({info.st_dev, info.st_ino});
  }
  return true;
}

} // namespace

OpenFiles find_open_files(const Numbers& numbers) {
  OpenFiles result;
  if (numbers.empty()) return result;
  std::error_code ec;
  fs::directory_iterator at("/proc", ec);
  for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
    const std::string name = at->path().filename().string();
    std::int32_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size() || pid == getpid()) continue;
    std::set<Inode> found;
    const bool seen = read_descriptors(at->path(), numbers, found);
    if (!read_mappings(at->path(), numbers, found) || !seen) ++result.unseen;
    for (const Inode& inode : found) {
      result.users[inode].push_back({pid, command_of(at->path())});
    }
  }
  return result;
}

} // namespace modeld::store
