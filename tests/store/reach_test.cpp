// SPDX-License-Identifier: Apache-2.0
#include "store/reach.hpp"

#include "tests/store/fixture.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <fstream>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

TEST_CASE("E02 check_reachable names the folder that stops an account", "[store][show][E02]") {
  TempDir dir;
  write_file(dir / "open/closed/file", "x");
  const auto file = dir / "open/closed/file";
  const auto closed = dir / "open/closed";
  const Account stranger{12345, {}, "stranger"};
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(file, fs::perms(0444));
  CHECK(check_reachable(file, stranger));
  fs::permissions(closed, fs::perms(0700));
  const auto stopped = check_reachable(file, stranger);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == Errc::denied);
  CHECK(stopped.error().message.find(closed.string() + "' has mode 0700") != std::string::npos);
  CHECK(stopped.error().hint.find("setfacl -m u:stranger:x") != std::string::npos);
  fs::permissions(closed, fs::perms(0750));
  struct stat info {};
  REQUIRE(stat(closed.c_str(), &info) == 0);
  CHECK(check_reachable(file, {12345, {7, info.st_gid}, {}}));

  // By a link: where the link is, and where it leads.
  fs::create_directory(dir / "links");
  fs::create_symlink("../open/closed/file", dir / "links/file");
  CHECK_FALSE(check_reachable(dir / "links/file", stranger));
  fs::permissions(closed, fs::perms(0755));
  CHECK(check_reachable(dir / "links/file", stranger));
  fs::permissions(dir / "links", fs::perms(0700));
  const auto at_link = check_reachable(dir / "links/file", stranger);
  REQUIRE_FALSE(at_link);
  CHECK(at_link.error().message.find((dir / "links").string() + "' has mode") != std::string::npos);
  fs::create_symlink("circle", dir / "circle");
  CHECK_FALSE(check_reachable(dir / "circle", stranger));
}

TEST_CASE("E02 check_reachable knows all groups of an account", "[store][show][E02]") {
  const Account root = account_of(0);
  CHECK(root.name == "root");
  CHECK(std::find(root.gids.begin(), root.gids.end(), 0U) != root.gids.end());
  CHECK(account_of(4'000'000'000U).gids.empty());
  // Somebody who is in more than their own group, as /etc/group lists them.
  std::ifstream groups("/etc/group");
  for (std::string line; std::getline(groups, line);) {
    const auto members = line.substr(line.rfind(':') + 1);
    const passwd* user =
        members.empty() ? nullptr : getpwnam(members.substr(0, members.find(',')).c_str());
    const group* in = user == nullptr ? nullptr : getgrnam(line.substr(0, line.find(':')).c_str());
    if (in == nullptr) continue;
    const auto account = account_of(user->pw_uid);
    CHECK(std::find(account.gids.begin(), account.gids.end(), in->gr_gid) != account.gids.end());
  }
}

TEST_CASE("E02 check_reachable reads access lists", "[store][show][E02]") {
  TempDir dir;
  write_file(dir / "closed/file", "x");
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(dir / "closed/file", fs::perms(0444));
  fs::permissions(dir / "closed", fs::perms(0700));
  const auto set_acl = [&](unsigned char named, unsigned char group, unsigned char mask) {
    // Owner rwx, user 12345 and group 77 as given, the folder's group nothing, mask, others
    // nothing.
    const unsigned char bytes[]{2,    0, 0,     0,                         //
                                0x01, 0, 7,     0, 0xff, 0xff, 0xff, 0xff, //
                                0x02, 0, named, 0, 0x39, 0x30, 0,    0,    //
                                0x04, 0, 0,     0, 0xff, 0xff, 0xff, 0xff, //
                                0x08, 0, group, 0, 77,   0,    0,    0,    //
                                0x10, 0, mask,  0, 0xff, 0xff, 0xff, 0xff, //
                                0x20, 0, 0,     0, 0xff, 0xff, 0xff, 0xff};
    return setxattr((dir / "closed").c_str(), "system.posix_acl_access", bytes, sizeof bytes, 0) ==
           0;
  };
  if (!set_acl(1, 0, 7)) return; // a file system without access lists
  CHECK(check_reachable(dir / "closed/file", {12345, {}, {}}));
  const auto other = check_reachable(dir / "closed/file", {12346, {77}, {}});
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("and an ACL") != std::string::npos);
  REQUIRE(set_acl(1, 1, 7));
  CHECK(check_reachable(dir / "closed/file", {12346, {77}, {}}));
  REQUIRE(set_acl(1, 1, 4)); // the mask takes it away again
  CHECK_FALSE(check_reachable(dir / "closed/file", {12345, {}, {}}));
  CHECK_FALSE(check_reachable(dir / "closed/file", {12346, {77}, {}}));
}
