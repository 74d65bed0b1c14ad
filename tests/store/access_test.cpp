// SPDX-License-Identifier: Apache-2.0
#include "store/fsck.hpp"
#include "tests/store/fixture.hpp"

#include <sys/stat.h>
#include <unistd.h>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

TEST_CASE("E03 everything belongs to the configured group before it is seen, whatever the umask",
          "[store][E03][group]") {
  if (::geteuid() != 0) return; // nobody else can give files to a group that is not theirs
  constexpr std::uint32_t k_group = 4242;
  const Files files{{"a", "aa"}, {"sub/b", "bb"}};
  TempDir dir;
  auto options = small_options();
  options.folder_mode = 0750;
  options.blob_mode = 0440;
  const mode_t before = ::umask(0077);
  const bool older = GENERATE(false, true); // a store from before there was a group
  if (older) {
    const auto old = open_store(dir / "root", options);
    REQUIRE(pull(*old, snapshot_of("org/Old", '1', files), files));
  }
  options.group = k_group;
  const auto store = open_store(dir / "root", options);
  const auto snapshot = snapshot_of("org/Name", '2', {{"c", "cc"}});
  REQUIRE(pull(*store, snapshot, {{"c", "cc"}}));
  REQUIRE(ingest(*store, "gguf"));
  REQUIRE(store->publish_variant(variant_of(snapshot, "Q4_K_M", "gguf")));
  ::umask(before);
  FsckOptions repair;
  repair.repair = true;
  const auto first = fsck(*store, repair, nullptr);
  REQUIRE(first);
  CHECK(first->clean() == !older); // what was made with the group has it
  CHECK(fsck(*store, {}, nullptr)->clean());
  const auto check_all = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(dir / "root")) {
      if (entry.path().filename() == "lock") continue;
      struct stat info {};
      REQUIRE(lstat(entry.path().c_str(), &info) == 0);
      INFO(entry.path());
      CHECK(info.st_gid == k_group);
      if (S_ISDIR(info.st_mode)) CHECK((info.st_mode & 07777) == 02750);
    }
  };
  check_all();
  struct stat blob {};
  REQUIRE(stat(store->blob_path(sha("cc")).c_str(), &blob) == 0);
  CHECK((blob.st_mode & 07777) == 0440);

  REQUIRE(::chown(store->blob_path(sha("cc")).c_str(), 0, 0) == 0);
  REQUIRE(::chown((dir / "root/variants").c_str(), 0, 0) == 0);
  fs::permissions(dir / "root/views", fs::perms(0700));
  const auto found = fsck(*store, repair, nullptr);
  REQUIRE(found);
  CHECK(found->findings.size() == 3);
  for (const FsckFinding& finding : found->findings) {
    CHECK(finding.id == "FS-41");
    CHECK(finding.repaired);
  }
  check_all();
}
