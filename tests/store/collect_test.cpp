// SPDX-License-Identifier: Apache-2.0
#include "store/collect.hpp"

#include "tests/store/faults.hpp"
#include "tests/store/fixture.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

const Files k_first{{"config.json", "{}"}, {"weights", "first weights"}};
const Files k_second{{"config.json", "{}"}, {"weights", "second weights, longer"}};

CollectOptions at_once() {
  CollectOptions options;
  options.grace = 0;
  return options;
}

const CollectItem* item_of(const CollectPlan& plan, const Sha256Digest& digest) {
  const auto at = std::find_if(plan.items.begin(), plan.items.end(), [&](const CollectItem& item) {
    return item.kind == CollectItem::Kind::blob && item.digest == digest;
  });
  return at == plan.items.end() ? nullptr : &*at;
}

Reason reason_of(const CollectPlan& plan, std::string_view text) {
  const auto* item = item_of(plan, sha(text));
  REQUIRE(item != nullptr);
  return item->reason;
}

/// A process that keeps a file open or mapped, until the object ends.
class Reader {
public:
  enum class How { open, mapped };
  Reader(const fs::path& path, How how) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    pid_ = fork();
    if (pid_ == 0) {
      const int fd = open(path.c_str(), O_RDONLY);
      if (how == How::mapped) {
        if (mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) _exit(1);
        close(fd);
      }
      if (write(ready[1], "x", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Reader() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

private:
  pid_t pid_ = 0;
};

} // namespace

TEST_CASE("collect removes blobs that nothing names", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "orphan"));
  const auto plan = collect(*store, at_once(), nullptr);
  REQUIRE(plan);
  CHECK(reason_of(*plan, "orphan") == Reason::unnamed);
  CHECK(plan->won == 6);
  CHECK_FALSE(fs::exists(store->blob_path(sha("orphan"))));
  CHECK_FALSE(*store->find_blob(sha("orphan")));
}

TEST_CASE("plan_collection changes nothing", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "orphan"));
  const auto plan = plan_collection(*store, at_once());
  REQUIRE(plan);
  CHECK(plan->won == 6);
  CHECK(*store->find_blob(sha("orphan")));
}

TEST_CASE("collect keeps young blobs that nothing names yet", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "just arrived"));
  const auto plan = collect(*store, {}, nullptr);
  REQUIRE(plan);
  CHECK(reason_of(*plan, "just arrived") == Reason::young);
  CHECK(*store->find_blob(sha("just arrived")));
}

TEST_CASE("collect removes shared blobs only with their last owner", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot_of("org/a", '1', k_first), k_first));
  REQUIRE(pull(*store, snapshot_of("org/b", '2', k_second), k_second));
  REQUIRE(store->remove_snapshot(RepoId{"org/a"}, commit_of('1')));
  auto plan = collect(*store, at_once(), nullptr);
  REQUIRE(plan);
  CHECK(reason_of(*plan, "{}") == Reason::listed);
  CHECK(item_of(*plan, sha("{}"))->detail.find("org/b") != std::string::npos);
  CHECK(reason_of(*plan, "first weights") == Reason::unnamed);
  check_invariants(*store);
  REQUIRE(store->remove_snapshot(RepoId{"org/b"}, commit_of('2')));
  plan = collect(*store, at_once(), nullptr);
  CHECK(reason_of(*plan, "{}") == Reason::unnamed);
}

TEST_CASE("collect keeps what is leased, held or brought by an unfinished job", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  JobRecord job;
  job.id = "pull-1";
  job.state = JobState::running;
  REQUIRE(store->put_job(job));
  Expected expected;
  expected.job = "pull-1";
  REQUIRE(ingest(*store, "of a job", expected));
  REQUIRE(ingest(*store, "leased"));
  REQUIRE(ingest(*store, "held"));
  LeaseHolder holder;
  holder.connection = 1;
  REQUIRE(store->grant_lease(sha("leased"), holder, 0, "llama-server"));
  {
    const auto held = store->hold({sha("held")});
    const auto plan = collect(*store, at_once(), nullptr);
    REQUIRE(plan);
    CHECK(reason_of(*plan, "of a job") == Reason::job);
    CHECK(reason_of(*plan, "leased") == Reason::leased);
    CHECK(item_of(*plan, sha("leased"))->detail.find("llama-server") != std::string::npos);
    CHECK(reason_of(*plan, "held") == Reason::held);
    CHECK(plan->won == 0);
  }
  job.state = JobState::done;
  REQUIRE(store->put_job(job));
  store->release_connection(1);
  CHECK(collect(*store, at_once(), nullptr)->won == 8 + 6 + 4);
}

TEST_CASE("E12 collect never takes what a process has mapped or open", "[store][gc][E12]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot_of("org/a", '1', k_first), k_first));
  const auto folder = store->snapshot_folder(RepoId{"org/a"}, commit_of('1'));
  Reader mapped(folder / "weights", Reader::How::mapped);
  Reader opened(folder / "config.json", Reader::How::open);
  const auto users = users_of(*store, {sha("first weights")});
  REQUIRE(users);
  REQUIRE(users->size() == 1);
  CHECK(users->front().find(std::to_string(mapped.pid())) != std::string::npos);
  REQUIRE(store->remove_snapshot(RepoId{"org/a"}, commit_of('1')));
  auto plan = collect(*store, at_once(), nullptr);
  REQUIRE(plan);
  CHECK(reason_of(*plan, "first weights") == Reason::open);
  CHECK(reason_of(*plan, "{}") == Reason::open);
  CHECK(item_of(*plan, sha("{}"))->detail.find(std::to_string(opened.pid())) != std::string::npos);
  mapped.end();
  opened.end();
  plan = collect(*store, at_once(), nullptr);
  CHECK(plan->won == 15);
}

TEST_CASE("E12 collect by force unlinks an open file and reports it as not yet freed",
          "[store][gc][E12]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "in use"));
  Reader reader(store->blob_path(sha("in use")), Reader::How::mapped);
  auto options = at_once();
  options.ignore_open_files = true;
  const auto plan = collect(*store, options, nullptr);
  REQUIRE(plan);
  CHECK(plan->won == 6);
  CHECK(plan->not_freed == 6);
  // The reader keeps its bytes: the file was unlinked, never truncated.
  CHECK(fs::exists("/proc/" + std::to_string(reader.pid())));
}

TEST_CASE("collect reaches a size target by last use, variants first", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto first = snapshot_of("org/a", '1', k_first);
  const auto second = snapshot_of("org/b", '2', k_second);
  REQUIRE(pull(*store, first, k_first));
  REQUIRE(pull(*store, second, k_second));
  auto variant = variant_of(first, "Q4_K_M", "a variant");
  variant.added = now();
  REQUIRE(ingest(*store, "a variant"));
  REQUIRE(store->publish_variant(variant));
  store->touch(sha("second weights, longer"));

  auto options = at_once();
  options.size_target = 2 + 13 + 22;
  auto plan = collect(*store, options, nullptr);
  REQUIRE(plan);
  CHECK(plan->won == 9);
  CHECK(store->list_variants()->empty());
  CHECK(store->list_snapshots()->size() == 2);

  options.size_target = 30;
  plan = collect(*store, options, nullptr);
  CHECK(plan->won == 13);
  REQUIRE(store->list_snapshots()->size() == 1);
  CHECK(store->list_snapshots()->front().repo.text == "org/b");
  check_invariants(*store);
}

TEST_CASE("collect never removes what is pinned, whatever the target", "[store][gc][S7]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  const auto snapshot = snapshot_of("org/a", '1', k_first);
  REQUIRE(pull(*store, snapshot, k_first));
  const auto pinned = variant_of(snapshot, "Q4_K_M", "pinned");
  const auto other = variant_of(snapshot, "Q8_0", "other");
  for (const auto& variant : {pinned, other}) {
    REQUIRE(ingest(*store, variant == pinned ? "pinned" : "other"));
    REQUIRE(store->publish_variant(variant));
  }
  REQUIRE(store->put_pin({"prod", snapshot.repo, snapshot.commit, {pinned.recipe}, 0, 1}));
  auto options = at_once();
  options.size_target = 0;
  options.unused_for = 0;
  const auto plan = collect(*store, options, nullptr);
  REQUIRE(plan);
  CHECK(*store->find_variant(pinned.key));
  CHECK_FALSE(*store->find_variant(other.key));
  CHECK(store->list_snapshots()->size() == 1);
  check_invariants(*store);
}

TEST_CASE("collect removes snapshots that nobody used for long enough", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot_of("org/a", '1', k_first), k_first));
  auto options = at_once();
  options.unused_for = 3600;
  CHECK(collect(*store, options, nullptr)->won == 0);
  options.unused_for = 0;
  CHECK(collect(*store, options, nullptr)->won == 15);
  CHECK(store->list_snapshots()->empty());
}

TEST_CASE("E04 collect shows and removes partial and stray files; the sum is what is on the disk",
          "[store][gc][E04]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(pull(*store, snapshot_of("org/a", '1', k_first), k_first));
  REQUIRE(store->remove_snapshot(RepoId{"org/a"}, commit_of('1')));
  auto partial = *store->resume_ingest("half", {});
  REQUIRE(partial->write(bytes_of("12345")));
  write_file(dir / "root/blobs/sha256/zz/whatever", "stray");

  auto plan = plan_collection(*store, {});
  REQUIRE(plan);
  CHECK(plan->total == 15 + 5 + 5);
  auto options = at_once();
  options.partial_age = 0;
  plan = collect(*store, options, nullptr);
  CHECK(plan->won == 15 + 5); // the partial file is being written
  partial.reset();
  plan = collect(*store, options, nullptr);
  CHECK(plan->won == 5);
  CHECK(fs::is_empty(dir / "root/tmp"));
  CHECK(plan_collection(*store, {})->total == 0);
}

TEST_CASE("collect can be cancelled and goes on later", "[store][gc]") {
  TempDir dir;
  const auto store = open_store(dir / "root");
  REQUIRE(ingest(*store, "orphan"));
  Progress progress;
  progress.cancel = true;
  CHECK(collect(*store, at_once(), &progress).error().code == Errc::cancelled);
  CHECK(*store->find_blob(sha("orphan")));
  CHECK(collect(*store, at_once(), nullptr)->won == 6);
}

TEST_CASE("collect survives a kill at any change", "[store][gc][crash]") {
  for (const Loss loss : {Loss::nothing, Loss::all}) {
    bool finished = false;
    for (int point = 0; !finished; ++point) {
      FastDir dir;
      {
        const auto store = open_store(dir / "root");
        REQUIRE(pull(*store, snapshot_of("org/a", '1', k_first), k_first));
        REQUIRE(pull(*store, snapshot_of("org/b", '2', k_second), k_second));
        REQUIRE(ingest(*store, "orphan"));
      }
      const int status = in_child([&] {
        CrashWatcher watcher(dir / "spare", point, loss);
        auto store = Store::open(dir / "root", small_options(&watcher));
        auto options = at_once();
        options.size_target = 30;
        if (!store || !collect(**store, options, nullptr)) _exit(4);
      });
      finished = status == 0;
      INFO("point " << point);
      REQUIRE((finished || status == CrashWatcher::k_exit));
      const auto store = open_store(dir / "root");
      check_invariants(*store);
      auto options = at_once();
      options.size_target = 30;
      REQUIRE(collect(*store, options, nullptr));
      check_invariants(*store);
      CHECK(plan_collection(*store, at_once())->total <= 30);
    }
  }
}
