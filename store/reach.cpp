// SPDX-License-Identifier: Apache-2.0
#include "store/reach.hpp"

#include <fmt/format.h>

#include <grp.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

constexpr int k_max_links = 40; // as the kernel has it
constexpr std::size_t k_max_acl = 64U << 10;

struct AclEntry {
  std::uint16_t tag = 0;
  std::uint16_t perm = 0;
  std::uint32_t id = 0;
};

std::uint32_t little(const unsigned char* bytes, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i > 0; --i) {
    value = value << 8U | bytes[i - 1];
  }
  return value;
}

/// system.posix_acl_access: a version in 4 bytes, then tag, permissions and id of each entry in 8,
/// all little endian. Nothing where a file has only its mode.
std::vector<AclEntry> read_acl(const fs::path& path) {
  std::array<unsigned char, k_max_acl> bytes{};
  const ssize_t size =
      ::getxattr(path.c_str(), "system.posix_acl_access", bytes.data(), bytes.size());
  std::vector<AclEntry> entries;
  if (size < 4 || little(bytes.data(), 4) != POSIX_ACL_XATTR_VERSION) return entries;
  for (std::size_t at = 4; at + 8 <= static_cast<std::size_t>(size); at += 8) {
    const unsigned char* entry = bytes.data() + at;
    entries.push_back({static_cast<std::uint16_t>(little(entry, 2)),
                       static_cast<std::uint16_t>(little(entry + 2, 2)), little(entry + 4, 4)});
  }
  return entries;
}

bool is_member(const Account& account, std::uint32_t gid) {
  return std::find(account.gids.begin(), account.gids.end(), gid) != account.gids.end();
}

/// acl(5), "access check algorithm", for somebody who is not the owner: a named user, else the best
/// of the groups, else everybody else. Named users and groups are masked.
bool acl_allows(const std::vector<AclEntry>& acl, const struct stat& info, const Account& account,
                unsigned bit) {
  unsigned mask = 7;
  for (const AclEntry& entry : acl) {
    if (entry.tag == ACL_MASK) mask = entry.perm;
  }
  for (const AclEntry& entry : acl) {
    if (entry.tag == ACL_USER && entry.id == account.uid) return (entry.perm & mask & bit) != 0;
  }
  bool member = false;
  for (const AclEntry& entry : acl) {
    const bool own = entry.tag == ACL_GROUP_OBJ && is_member(account, info.st_gid);
    const bool named = entry.tag == ACL_GROUP && is_member(account, entry.id);
    if (!own && !named) continue;
    if ((entry.perm & mask & bit) != 0) return true;
    member = true;
  }
  return !member && (info.st_mode & bit) != 0;
}

/// bit: 4 to read, 1 to search.
bool may(const fs::path& path, const struct stat& info, const Account& account, unsigned bit) {
  if (account.uid == 0) return true;
  if (info.st_uid == account.uid) return (info.st_mode & (bit << 6U)) != 0;
  if (const auto acl = read_acl(path); !acl.empty()) return acl_allows(acl, info, account, bit);
  if (is_member(account, info.st_gid)) return (info.st_mode & (bit << 3U)) != 0;
  return (info.st_mode & bit) != 0;
}

constexpr std::size_t k_max_record = 1U << 20; ///< of the users' and groups' database

std::string group_name(gid_t gid) {
  std::vector<char> buffer(k_max_record);
  group record{};
  group* found = nullptr;
  ::getgrgid_r(gid, &record, buffer.data(), buffer.size(), &found);
  return found == nullptr ? fmt::format("{}", gid) : found->gr_name;
}

std::string describe(const Account& account) {
  return account.name.empty() ? fmt::format("{}", account.uid)
                              : fmt::format("{} ('{}')", account.uid, account.name);
}

tl::unexpected<Error> blocked(const fs::path& path, const fs::path& at, const struct stat& info,
                              const Account& account, unsigned bit) {
  const std::string who = account.name.empty() ? fmt::format("{}", account.uid) : account.name;
  // Modes of stored files are the configuration's; fsck would set them back.
  const std::string hint =
      bit == 4 ? fmt::format("put {} into group {}, or let others read stored files "
                             "(store.blob_mode, store.group)",
                             who, group_name(info.st_gid))
               : fmt::format("chmod o+x '{0}', or setfacl -m u:{1}:x '{0}', or put {1} into "
                             "group {2}, or choose another folder",
                             at.string(), who, group_name(info.st_gid));
  return fail(Errc::denied,
              fmt::format("reaching '{}' as user {}: '{}' has mode {:04o}, owner {} and group {}{}",
                          path.string(), describe(account), at.string(), info.st_mode & 07777,
                          info.st_uid, group_name(info.st_gid),
                          read_acl(at).empty() ? "" : ", and an ACL"),
              hint);
}

/// Walks as the kernel would, link by link.
class Walker {
public:
  Walker(const fs::path& path, const Account& account) : path_(path), account_(account) {
    push(path);
  }

  Result<void> run() {
    MODELD_TRY(check("/", 1));
    while (!parts_.empty()) {
      const fs::path part = std::move(parts_.front());
      parts_.pop_front();
      if (part == "..") {
        at_ = at_.parent_path();
      } else if (!part.empty() && part != "." && part != "/") {
        MODELD_TRY(step(at_ / part));
      }
    }
    return {};
  }

private:
  void push(const fs::path& path) { parts_.insert(parts_.begin(), path.begin(), path.end()); }

  Result<void> step(const fs::path& next) {
    struct stat info {};
    if (::lstat(next.c_str(), &info) != 0) return failed(next);
    if (!S_ISLNK(info.st_mode)) {
      at_ = next;
      return check(next, S_ISDIR(info.st_mode) ? 1 : 4);
    }
    if (++links_ > k_max_links) {
      errno = ELOOP;
      return failed(next);
    }
    std::error_code ec;
    const fs::path target = fs::read_symlink(next, ec);
    if (ec) return fail(from_errno(ec.value(), fmt::format("following '{}'", next.string())));
    if (target.is_absolute()) at_ = "/";
    push(target);
    return {};
  }

  Result<void> check(const fs::path& at, unsigned bit) {
    struct stat info {};
    if (::lstat(at.c_str(), &info) != 0) return failed(at);
    if (may(at, info, account_, bit)) return {};
    return blocked(path_, at, info, account_, bit);
  }

  static Result<void> failed(const fs::path& at) {
    return fail(from_errno(errno, fmt::format("looking at '{}'", at.string())));
  }

  const fs::path& path_;
  const Account& account_;
  fs::path at_ = "/";
  std::deque<fs::path> parts_;
  int links_ = 0;
};

} // namespace

Account account_of(std::uint32_t uid) {
  Account account{uid, {}, {}};
  std::vector<char> buffer(k_max_record);
  passwd record{};
  passwd* user = nullptr;
  ::getpwuid_r(uid, &record, buffer.data(), buffer.size(), &user);
  if (user == nullptr) return account;
  account.name = user->pw_name;
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  const gid_t own = user->pw_gid;
  if (::getgrouplist(account.name.c_str(), own, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    ::getgrouplist(account.name.c_str(), own, groups.data(), &count);
  }
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  account.gids.assign(groups.begin(), groups.end());
  return account;
}

Result<void> check_reachable(const fs::path& path, const Account& account) {
  return Walker(path, account).run();
}

} // namespace modeld::store
