// SPDX-License-Identifier: Apache-2.0
#include "store/open_files.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unordered_map>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

std::string command_of(const fs::path& process) {
  std::ifstream in(process / "comm");
  std::string name;
  std::getline(in, name);
  return name;
}

/// Looked up for every line of every process, so by number first and never one by one.
class WantedFiles {
public:
  explicit WantedFiles(const std::set<Inode>& files) {
    devices_.reserve(files.size());
    for (const Inode& file : files) {
      devices_.emplace(file.number, file.device);
    }
  }
  bool contains(const Inode& file) const {
    const auto [from, to] = devices_.equal_range(file.number);
    return std::any_of(from, to, [&file](const auto& one) { return one.second == file.device; });
  }
  bool has_number(ino_t number) const { return devices_.contains(number); }

private:
  std::unordered_multimap<ino_t, dev_t> devices_;
};

/// The inodes behind a process's descriptors. False where we may not look.
bool read_descriptors(const fs::path& process, const WantedFiles& wanted, std::set<Inode>& found) {
  std::error_code ec;
  fs::directory_iterator at(process / "fd", ec);
  for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
    struct stat info {};
    if (stat(at->path().c_str(), &info) != 0) continue;
    const Inode inode{info.st_dev, info.st_ino};
    if (wanted.contains(inode)) found.insert(inode);
  }
  return ec != std::errc::permission_denied;
}

/// Lines of /proc/PID/maps: "from-to perms offset major:minor inode path".
bool read_mappings(const fs::path& process, const WantedFiles& wanted, std::set<Inode>& found) {
  std::ifstream in(process / "maps");
  if (!in) return false;
  std::string line;
  while (std::getline(in, line)) {
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu", &major, &minor, &inode) != 3) continue;
    if (inode == 0) continue;
    const Inode exact{makedev(major, minor), inode};
    if (wanted.contains(exact)) {
      found.insert(exact);
      continue;
    }
    // Some file systems (btrfs, overlay) show another device here than stat does: look by number,
    // then ask the named file.
    const auto path_at = line.find('/');
    if (path_at == std::string::npos || !wanted.has_number(inode)) continue;
    struct stat info {};
    if (stat(line.c_str() + path_at, &info) != 0) continue;
    const Inode named{info.st_dev, info.st_ino};
    if (wanted.contains(named)) found.insert(named);
  }
  return true;
}

} // namespace

OpenFiles find_open_files(const std::set<Inode>& files) {
  OpenFiles result;
  if (files.empty()) return result;
  const WantedFiles wanted(files);
  std::error_code ec;
  fs::directory_iterator at("/proc", ec);
  for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
    const std::string name = at->path().filename().string();
    std::int32_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size() || pid == getpid()) continue;
    std::set<Inode> found;
    const bool seen = read_descriptors(at->path(), wanted, found);
    if (!read_mappings(at->path(), wanted, found) || !seen) ++result.unseen;
    for (const Inode& inode : found) {
      result.users[inode].push_back({pid, command_of(at->path())});
    }
  }
  return result;
}

} // namespace modeld::store
