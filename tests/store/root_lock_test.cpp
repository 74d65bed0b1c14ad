// SPDX-License-Identifier: Apache-2.0
#include "store/root_lock.hpp"

#include "tests/store/fixture.hpp"

#include <boost/json.hpp>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;

namespace {

std::string record_of(const ProcessIdentity& who) {
  return boost::json::serialize(boost::json::object{{"pid", who.pid},
                                                    {"start_ticks", who.start_ticks},
                                                    {"boot_id", who.boot_id},
                                                    {"pid_namespace", who.pid_namespace},
                                                    {"machine_id", who.machine_id},
                                                    {"version", "0"}});
}

} // namespace

TEST_CASE("Store::open refuses a second owner and names the first", "[store][lock]") {
  TempDir dir;
  const auto first = open_store(dir / "root");
  const auto second = Store::open(dir / "root", small_options());
  REQUIRE_FALSE(second);
  CHECK(second.error().code == Errc::conflict);
  CHECK(second.error().details.front().second == std::to_string(getpid()));
}

TEST_CASE("Store::open refuses a live owner even where flock excludes nobody",
          "[store][lock][C19]") {
  TempDir dir;
  open_store(dir / "root");
  // A process that lives: our parent. It holds no flock, as on a file system that ignores it.
  auto parent = this_process();
  parent.pid = getppid();
  const auto ticks = start_ticks_of(parent.pid);
  REQUIRE(ticks);
  parent.start_ticks = *ticks;
  write_file(dir / "root/lock", record_of(parent));
  CHECK(Store::open(dir / "root", small_options()).error().code == Errc::conflict);
}

TEST_CASE("Store::open takes over from an owner that is gone", "[store][lock]") {
  TempDir dir;
  open_store(dir / "root");
  auto gone = this_process();
  gone.start_ticks += 1;
  write_file(dir / "root/lock", record_of(gone));
  CHECK(Store::open(dir / "root", small_options()));
}

TEST_CASE("Store::open takes over a lock whose record a crash cut short", "[store][lock]") {
  TempDir dir;
  open_store(dir / "root");
  const std::string record = record_of(this_process());
  for (std::size_t cut = 1; cut < record.size(); cut += 7) {
    write_file(dir / "root/lock", record.substr(0, cut));
    CHECK(Store::open(dir / "root", small_options()));
  }
}

TEST_CASE("judge_owner tells a rebooted machine from another one", "[store][lock]") {
  const ProcessIdentity self{10, 100, "boot-2", "pid:[1]", "machine-a"};
  auto owner = self;
  owner.pid = 20;
  CHECK(judge_owner(owner, self, 100) == OwnerVerdict::alive);
  CHECK(judge_owner(owner, self, 101) == OwnerVerdict::gone);
  CHECK(judge_owner(owner, self, std::nullopt) == OwnerVerdict::gone);
  owner.pid_namespace = "pid:[2]";
  CHECK(judge_owner(owner, self, 100) == OwnerVerdict::unknown);
  owner = self;
  owner.boot_id = "boot-1";
  CHECK(judge_owner(owner, self, 100) == OwnerVerdict::gone);
  owner.machine_id = "machine-b";
  CHECK(judge_owner(owner, self, 100) == OwnerVerdict::unknown);
}
