// SPDX-License-Identifier: Apache-2.0
#include "store/collect.hpp"
#include "store/disk_use.hpp"
#include "store/rebuild.hpp"
#include "tests/store/fixture.hpp"

#include <sys/stat.h>

#include <set>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t k_alice = 1001;
constexpr std::uint32_t k_bob = 1002;

std::unique_ptr<Store> store_with(const fs::path& root, UserQuotas quotas) {
  auto options = small_options();
  options.user_quotas = std::move(quotas);
  return open_store(root, options);
}

/// Ingests all files, then publishes them for somebody.
void pull_for(Store& store, std::uint32_t uid, const Snapshot& snapshot, const Files& files) {
  for (const auto& [path, text] : files) {
    REQUIRE(ingest(store, text));
  }
  REQUIRE(store.publish_snapshot(snapshot, uid));
}

UserUsage usage_of(const Store& store, std::uint32_t uid) {
  const auto users = store.user_usage();
  REQUIRE(users);
  for (const UserUsage& user : *users) {
    if (user.uid == uid) return user;
  }
  return {uid, 0, 0, store.quota_of(uid)};
}

} // namespace

TEST_CASE("a file is charged once, to the user whose request listed it first", "[store][quota]") {
  TempDir dir;
  const auto store = store_with(dir / "root", {100, {}});
  const Files first{{"README", "mine"}, {"weights", "wwwwwwww"}};
  const Files second{{"LICENSE", "yours!"}, {"weights", "wwwwwwww"}};
  const auto one = snapshot_of("org/One", '1', first);
  const auto two = snapshot_of("org/Two", '2', second);
  pull_for(*store, k_alice, one, first);
  pull_for(*store, k_bob, two, second);
  REQUIRE(ingest(*store, "gguf"));
  REQUIRE(store->publish_variant(variant_of(one, "Q4_K_M", "gguf"), k_bob));
  CHECK(usage_of(*store, k_alice).used == 12);
  CHECK(usage_of(*store, k_bob).used == 6 + 4);
  REQUIRE(store->publish_snapshot(one, k_bob)); // what is here already costs nothing
  CHECK(usage_of(*store, k_alice).used == 12);

  // A file goes from the account with the last that names it.
  REQUIRE(store->remove_snapshot(one.repo, one.commit));
  CHECK(usage_of(*store, k_alice).used == 8);
  REQUIRE(store->remove_snapshot(two.repo, two.commit));
  CHECK(usage_of(*store, k_alice).used == 0);
  CHECK(usage_of(*store, k_bob).used == 4);
  REQUIRE(store->remove_variant(variant_of(one, "Q4_K_M", "gguf").key));
  CHECK(usage_of(*store, k_bob).used == 0);

  // It is still on the disk, and charged anew when it is named again.
  REQUIRE(store->publish_snapshot(two, k_bob));
  CHECK(usage_of(*store, k_bob).used == 14);
  CHECK(usage_of(*store, k_alice).used == 0);
  CollectOptions options;
  options.grace = 0;
  options.size_target = 0;
  REQUIRE(collect(*store, options, nullptr));
  CHECK(usage_of(*store, k_bob).used == 0);
}

TEST_CASE("a quota is refused with its numbers, by default and by exception", "[store][quota]") {
  TempDir dir;
  const auto store = store_with(dir / "root", {20, {{k_bob, 0}, {1003, 5}}});
  const Files files{{"weights", "0123456789"}};
  pull_for(*store, k_alice, snapshot_of("org/One", '1', files), files);
  const auto held = store->reserve_space(4, k_alice);
  REQUIRE(held);
  CHECK(usage_of(*store, k_alice) == UserUsage{k_alice, 10, 4, 20});
  const auto refused = store->reserve_space(7, k_alice);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::no_space);
  CHECK(refused.error().message.find("user 1001") != std::string::npos);
  CHECK(refused.error().message.find("6 of the quota of 20 bytes are left, 10 are used and 4 "
                                     "promised to running jobs; 7 needed") != std::string::npos);
  CHECK(refused.error().hint.find("modelctl usage") != std::string::npos);
  const std::map<std::string, std::string> details(refused.error().details.begin(),
                                                   refused.error().details.end());
  CHECK(details.at("quota") == "20");
  CHECK(details.at("used") == "10");
  CHECK(details.at("reserved") == "4");
  CHECK(details.at("needed") == "7");
  CHECK(usage_of(*store, k_alice).reserved == 4); // the refused one is given back
  CHECK(store->reserve_space(6, k_alice));
  CHECK(store->reserve_space(0, k_alice));
  CHECK(store->check_quota(k_alice));
  CHECK(store->reserve_space(1'000'000, k_bob)); // has none
  CHECK_FALSE(store->reserve_space(6, 1003));
  CHECK(store->reserve_space(1'000'000)); // nobody's

  const auto rest = store->reserve_space(6, k_alice);
  const auto full = store->check_quota(k_alice);
  REQUIRE_FALSE(full);
  CHECK(full.error().message.find("0 of the quota of 20 bytes are left") != std::string::npos);
}

TEST_CASE("two jobs of one user cannot both have the last bytes", "[store][quota]") {
  TempDir dir;
  const auto store = store_with(dir / "root", {100, {}});
  auto first = *store->reserve_space(60, k_alice);
  first->use(60); // on the disk, and neither a blob nor charged yet
  CHECK_FALSE(store->reserve_space(41, k_alice));
  first->store(60);
  CHECK_FALSE(store->reserve_space(41, k_alice));
  first->forgo(30); // somebody else brought those
  CHECK(store->reserve_space(41, k_alice));
  first.reset();
  CHECK(store->reserve_space(100, k_alice));
}

TEST_CASE("the store's own limit counts what was written and is no blob yet", "[store][quota]") {
  TempDir dir;
  auto options = small_options();
  options.max_bytes = 100;
  const auto store = open_store(dir / "root", options);
  auto first = *store->reserve_space(60);
  first->use(60);
  CHECK_FALSE(store->reserve_space(41));
  first.reset();
  CHECK(store->reserve_space(41));
}

TEST_CASE("what is paid for survives a restart and a new index", "[store][quota]") {
  TempDir dir;
  const Files files{{"weights", "0123456789"}};
  {
    const auto store = store_with(dir / "root", {20, {}});
    pull_for(*store, k_alice, snapshot_of("org/One", '1', files), files);
    const auto report = rebuild_open_index(*store);
    REQUIRE(report);
    CHECK(report->differences.empty());
    CHECK(usage_of(*store, k_alice).used == 10);
  }
  const auto store = store_with(dir / "root", {20, {}});
  CHECK(usage_of(*store, k_alice).used == 10);
  check_invariants(*store);
}

TEST_CASE("E04 the lines of what is used add up to what is on the disk", "[store][E04][usage]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const Files files{{"README", "text"}, {"sub/weights", std::string(100'000, 'w')}};
  const auto snapshot = snapshot_of("org/One", '1', files);
  REQUIRE(pull(*store, snapshot, files));
  REQUIRE(ingest(*store, std::string(50'000, 'g')));
  REQUIRE(store->publish_variant(variant_of(snapshot, "Q4_K_M", std::string(50'000, 'g'))));
  REQUIRE(ingest(*store, std::string(30'000, 'u')));
  write_file(dir / "root/tmp/resume-sha256-0.part", std::string(20'000, 'p'));
  write_file(dir / "root/quarantine/x", std::string(10'000, 'q'));
  const auto use = measure_disk_use(*store);
  REQUIRE(use);
  CHECK(use->listed >= 100'004);
  CHECK(use->built >= 50'000);
  CHECK(use->built < 100'000);
  CHECK(use->unnamed >= 30'000);
  CHECK(use->unfinished >= 20'000);
  CHECK(use->quarantine >= 10'000);
  std::set<std::pair<dev_t, ino_t>> seen;
  std::uint64_t blocks = 0;
  const auto count = [&](const fs::path& path) {
    struct stat info {};
    REQUIRE(lstat(path.c_str(), &info) == 0);
    if (seen.emplace(info.st_dev, info.st_ino).second) {
      blocks += static_cast<std::uint64_t>(info.st_blocks) * 512;
    }
  };
  count(dir / "root");
  for (const auto& entry : fs::recursive_directory_iterator(dir / "root")) {
    count(entry.path());
  }
  CHECK(use->total() == blocks);
}
