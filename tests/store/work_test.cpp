// SPDX-License-Identifier: Apache-2.0
#include "store/records.hpp"

#include "tests/store/fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;

namespace {

const Files k_files{{"weights", "wwww"}};

JobRecord job(std::string id, JobState state, UnixTime created) {
  return {std::move(id), "pull",  state,      "downloading", R"({"ref":"org/name"})", "", "", 5, 10,
          1000,          created, created + 1};
}

LeaseHolder until(UnixTime deadline) {
  LeaseHolder holder;
  holder.kind = LeaseHolder::Kind::deadline;
  holder.deadline = deadline;
  return holder;
}

/// A process that lives as long as the object.
class Child {
public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      pause();
      _exit(0);
    }
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  LeaseHolder holder() const {
    LeaseHolder holder;
    holder.kind = LeaseHolder::Kind::process;
    holder.pid = pid_;
    return holder;
  }

private:
  pid_t pid_;
};

} // namespace

TEST_CASE("Store::put_job keeps a job over a restart", "[store][job]") {
  TempDir dir;
  {
    const auto store = open_store(dir / "root");
    REQUIRE(store->put_job(job("a", JobState::queued, 1)));
    REQUIRE(store->put_job(job("a", JobState::running, 1)));
  }
  const auto store = open_store(dir / "root");
  CHECK(**store->find_job("a") == job("a", JobState::running, 1));
  CHECK_FALSE(*store->find_job("b"));
}

TEST_CASE("Store::unfinished_jobs gives what is to be resumed, oldest first", "[store][job]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(store->put_job(job("new", JobState::queued, 3)));
  REQUIRE(store->put_job(job("old", JobState::running, 1)));
  REQUIRE(store->put_job(job("done", JobState::done, 2)));
  REQUIRE(store->put_job(job("failed", JobState::failed, 2)));
  const auto jobs = store->unfinished_jobs();
  REQUIRE(jobs->size() == 2);
  CHECK(jobs->at(0).id == "old");
  CHECK(jobs->at(1).id == "new");
  CHECK(store->list_jobs()->front().id == "new");
}

TEST_CASE("Store::delete_job removes a job and what it kept", "[store][job]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(store->put_job(job("a", JobState::running, 1)));
  Expected expected;
  expected.job = "a";
  REQUIRE(ingest(*store, "blob", expected));
  REQUIRE(store->put_job(job("a", JobState::running, 1)));
  REQUIRE(store->delete_job("a"));
  CHECK(store->list_jobs()->empty());
}

TEST_CASE("JobState has a slug for each state", "[store][job]") {
  for (const auto state : {JobState::queued, JobState::running, JobState::done, JobState::failed,
                           JobState::cancelled}) {
    CHECK(job_state_from_slug(slug(state)) == state);
  }
  CHECK_FALSE(job_state_from_slug("asleep"));
}

TEST_CASE("Store::put_pin keeps a snapshot from removal", "[store][pin]") {
  TempDir dir;
  const auto snapshot = snapshot_of("org/name", '1', k_files);
  const Pin pin{"prod", snapshot.repo, snapshot.commit, {"Q4_K_M;via=AUTO"}, 1000, 5};
  {
    const auto store = open_store(dir / "root");
    REQUIRE(pull(*store, snapshot, k_files));
    REQUIRE(store->put_pin(pin));
  }
  const auto store = open_store(dir / "root");
  CHECK(**store->find_pin("prod") == pin);
  const auto removed = store->remove_snapshot(snapshot.repo, snapshot.commit);
  CHECK(removed.error().code == Errc::conflict);
  CHECK(removed.error().message.find("prod") != std::string::npos);
  check_invariants(*store);
  REQUIRE(store->delete_pin("prod"));
  CHECK(store->remove_snapshot(snapshot.repo, snapshot.commit));
}

TEST_CASE("Store::put_pin refuses names that are paths and snapshots that are not here",
          "[store][pin]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const Pin pin{"prod", RepoId{"org/name"}, commit_of('1'), {}, 0, 0};
  CHECK(store->put_pin(pin).error().code == Errc::not_found);
  auto evil = pin;
  evil.name = "../prod";
  CHECK(store->put_pin(evil).error().code == Errc::invalid_argument);
  CHECK(store->delete_pin("none").error().code == Errc::not_found);
}

TEST_CASE("Store::grant_lease holds a blob for a process as long as it lives", "[store][lease]") {
  TempDir dir;
  Child child;
  {
    const auto store = open_store(dir / "root");
    REQUIRE(ingest(*store, "blob"));
    REQUIRE(store->grant_lease(sha("blob"), child.holder(), 1000, "test"));
    CHECK(*store->in_use(sha("blob")));
  }
  const auto store = open_store(dir / "root");
  REQUIRE(store->list_leases()->size() == 1);
  CHECK(store->list_leases()->front().note == "test");
  child.end();
  CHECK_FALSE(*store->in_use(sha("blob")));
  CHECK(store->list_leases()->empty());
}

TEST_CASE("Store::grant_lease refuses a process that is gone and a deadline that has passed",
          "[store][lease]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "blob"));
  Child child;
  const auto holder = child.holder();
  child.end();
  CHECK(store->grant_lease(sha("blob"), holder, 0, "").error().code == Errc::not_found);
  CHECK(store->grant_lease(sha("blob"), until(1), 0, "").error().code == Errc::invalid_argument);
  CHECK(store->grant_lease(sha("none"), until(now() + 60), 0, "").error().code == Errc::not_found);
}

TEST_CASE("Store::release_connection ends all leases of a connection", "[store][lease]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "blob"));
  LeaseHolder holder;
  holder.connection = 7;
  REQUIRE(store->grant_lease(sha("blob"), holder, 0, ""));
  holder.connection = 8;
  REQUIRE(store->grant_lease(sha("blob"), holder, 0, ""));
  store->release_connection(7);
  CHECK(store->list_leases()->size() == 1);
  CHECK(*store->in_use(sha("blob")));
  store->release_connection(8);
  CHECK_FALSE(*store->in_use(sha("blob")));
}

TEST_CASE("Store::release_lease ends one lease", "[store][lease]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "blob"));
  const auto lease = store->grant_lease(sha("blob"), until(now() + 60), 0, "");
  REQUIRE(lease);
  REQUIRE(store->release_lease(lease->id));
  CHECK(store->release_lease(lease->id).error().code == Errc::not_found);
  CHECK_FALSE(*store->in_use(sha("blob")));
}
