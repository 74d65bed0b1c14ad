// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include "store/ingest.hpp"

#include "tests/store/faults.hpp"
#include "tests/store/fixture.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

// After each single change of the disk and each SQL step: a crash, with four kinds of loss. After
// it every invariant holds, nothing acknowledged is lost, and the work can be done again.

using namespace modeld;
using namespace modeld::test;
using store::Store;
namespace fs = std::filesystem;

namespace {

const Files k_files{{"config.json", "{}"}, {"sub/weights", "wwww"}};
const Files k_newer{{"config.json", "{}"}, {"sub/weights", "WWWW"}};

Snapshot first() {
  return snapshot_of("org/Name", '1', k_files);
}
Snapshot second() {
  return snapshot_of("org/Name", '2', k_newer);
}
store::Variant variant() {
  return variant_of(first(), "Q4_K_M", "gguf of the first");
}

store::Ref main_at(char commit) {
  return {RepoId{"org/Name"}, "main", commit_of(commit), RepoId{"org/Name"}, 1000};
}

store::Pin pin() {
  return {"prod", RepoId{"org/Name"}, commit_of('1'), {"Q4_K_M;via=AUTO"}, 0, 5};
}

store::JobRecord job(store::JobState state) {
  store::JobRecord record;
  record.id = "job";
  record.kind = "pull";
  record.state = state;
  return record;
}

Result<void> resume(Store& store) {
  store::Expected expected;
  expected.size = 10;
  expected.sha256 = sha("0123456789");
  constexpr std::string_view k_text = "0123456789";
  constexpr std::uint64_t k_ahead = 7; // from here on the bytes come before the others
  MODELD_ASSIGN(auto ingest, store.resume_ingest("part", expected));
  if (ingest->offset() <= k_ahead && ingest->shelved().empty()) {
    const auto ahead = bytes_of(k_text.substr(k_ahead));
    const std::vector<std::byte> piece(ahead.begin(), ahead.end());
    MODELD_TRY(ingest->shelve(k_ahead, {&piece, 1}));
  }
  while (ingest->offset() < k_text.size()) {
    if (const auto ahead = ingest->unshelve(ingest->offset())) {
      MODELD_TRY(ingest->write(*ahead));
    } else {
      MODELD_TRY(ingest->write(bytes_of(k_text.substr(ingest->offset(), 1))));
    }
  }
  MODELD_TRY(ingest->commit());
  return {};
}

constexpr std::array<std::string_view, 3> k_together{"one", "two", "three"};

Result<void> commit_together(Store& store) {
  std::vector<std::unique_ptr<store::Ingest>> ingests;
  std::vector<store::Ingest*> all;
  for (const std::string_view text : k_together) {
    MODELD_ASSIGN(auto ingest, store.begin_ingest({}));
    MODELD_TRY(ingest->write(bytes_of(text)));
    ingests.push_back(std::move(ingest));
    all.push_back(ingests.back().get());
  }
  return store::commit_all(all);
}

bool has_together(Store& store) {
  return std::all_of(k_together.begin(), k_together.end(), [&](std::string_view text) {
    const auto found = store.find_blob(sha(text));
    return found && found->has_value();
  });
}

bool lists(Store& store, const Snapshot& snapshot) {
  const auto found = store.find_snapshot(snapshot.repo, snapshot.commit);
  return found && *found && **found == snapshot;
}

template <class T>
bool there(const Result<std::optional<T>>& found) {
  return found && found->has_value();
}

struct Step {
  std::string name;
  std::function<Result<void>(Store&)> run; ///< may be done again
  std::function<bool(Store&)> holds;       ///< what was acknowledged
  int ends = -1;                           ///< the earlier step that this one takes back
};

/// A step that is done already counts as done: it is run again after a crash.
Result<void> fine_if_gone(Result<void> done) {
  if (!done && done.error().code == Errc::not_found) return {};
  return done;
}

std::vector<Step> scenario() {
  const auto s1 = first();
  const auto s2 = second();
  const auto v = variant();
  return {
      {"queue job", [](Store& s) { return s.put_job(job(store::JobState::running)); },
       [](Store& s) { return there(s.find_job("job")); }},
      {"pull a part of first, then all of it",
       [=](Store& s) -> Result<void> {
         Snapshot part = s1;
         const SnapshotFile last = part.files.back();
         part.files.pop_back();
         part.absent = {{last.path, last.size, last.git_oid, std::nullopt}};
         MODELD_TRY(pull(s, part, k_files));
         return pull(s, s1, k_files);
       },
       [=](Store& s) { return lists(s, s1); }},
      {"record ref", [](Store& s) { return s.record_ref(main_at('1')); },
       [](Store& s) { return there(s.find_ref(RepoId{"org/Name"}, "main")); }},
      {"gate", [](Store& s) { return s.record_access(RepoId{"org/Name"}, true, 1000); },
       [](Store& s) { return !s.may_read(RepoId{"org/Name"}, 1001).value_or(true); }},
      {"pin", [](Store& s) { return s.put_pin(pin()); },
       [](Store& s) { return there(s.find_pin("prod")); }},
      {"resume", resume, [](Store& s) { return there(s.find_blob(sha("0123456789"))); }},
      {"build",
       [=](Store& s) -> Result<void> {
         MODELD_TRY(ingest(s, "gguf of the first"));
         return s.publish_variant(v);
       },
       [=](Store& s) { return there(s.find_variant(v.key)); }},
      {"pull second", [=](Store& s) { return pull(s, s2, k_newer); },
       [=](Store& s) { return lists(s, s2); }},
      {"move ref", [](Store& s) { return s.record_ref(main_at('2')); },
       [](Store& s) {
         const auto ref = s.find_ref(RepoId{"org/Name"}, "main");
         return there(ref) && (*ref)->commit == commit_of('2');
       },
       2},
      {"unpin", [](Store& s) { return fine_if_gone(s.delete_pin("prod")); },
       [](Store& s) { return !there(s.find_pin("prod")); }, 4},
      {"remove first",
       [=](Store& s) { return fine_if_gone(s.remove_snapshot(s1.repo, s1.commit)); },
       [=](Store& s) { return !lists(s, s1); }, 1},
      {"remove variant", [=](Store& s) { return fine_if_gone(s.remove_variant(v.key)); },
       [=](Store& s) { return !there(s.find_variant(v.key)); }, 6},
      {"commit together", commit_together, has_together},
      {"end job", [](Store& s) { return s.put_job(job(store::JobState::done)); },
       [](Store& s) { return s.unfinished_jobs()->empty(); }, 0},
  };
}

/// Everything that was acknowledged and not taken back, while `current` may be half done.
void check_acknowledged(Store& store, const std::vector<Step>& steps, std::size_t current) {
  for (std::size_t i = 0; i < current; ++i) {
    bool ended = false;
    for (std::size_t j = i + 1; j <= current && j < steps.size(); ++j) {
      ended = ended || steps[j].ends == static_cast<int>(i);
    }
    INFO("acknowledged: " << steps[i].name);
    if (!ended) CHECK(steps[i].holds(store));
  }
}

void run_all(Store& store, const std::vector<Step>& steps, std::size_t from,
             std::atomic<std::size_t>* acknowledged) {
  for (std::size_t i = from; i < steps.size(); ++i) {
    const auto done = steps[i].run(store);
    if (!done) {
      std::fprintf(stderr, "%s: %s\n", steps[i].name.c_str(), done.error().message.c_str());
      _exit(3);
    }
    if (acknowledged != nullptr) *acknowledged = i + 1;
  }
}

/// Memory that the child shares.
class Shared {
public:
  Shared()
      : memory_(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        count_(new (memory_) std::atomic<std::size_t>(0)) {}
  ~Shared() { munmap(memory_, 4096); }
  std::atomic<std::size_t>* get() { return count_; }

private:
  void* memory_;
  std::atomic<std::size_t>* count_;
};

/// One crash at `point`; false when the work was finished before it.
bool crash_at(int point, Loss loss) {
  FastDir dir;
  Shared acknowledged;
  const auto steps = scenario();
  const int status = in_child([&] {
    CrashWatcher watcher(dir / "spare", point, loss);
    auto store = Store::open(dir / "root", small_options(&watcher));
    if (!store) _exit(4);
    run_all(**store, steps, 0, acknowledged.get());
  });
  INFO("point " << point << ", acknowledged " << *acknowledged.get());
  REQUIRE((status == CrashWatcher::k_exit || status == 0));
  {
    const auto store = open_store(dir / "root");
    check_invariants(*store);
    check_acknowledged(*store, steps, *acknowledged.get());
    for (std::size_t i = *acknowledged.get(); i < steps.size(); ++i) {
      INFO("again: " << steps[i].name);
      const auto done = steps[i].run(*store);
      if (!done) FAIL(done.error().message);
    }
    check_invariants(*store);
    check_acknowledged(*store, steps, steps.size());
  }
  return status != 0;
}

void crash_everywhere(Loss loss) {
  int point = 0;
  while (crash_at(point, loss)) {
    ++point;
  }
  CHECK(point > 150);
}

} // namespace

TEST_CASE("Store keeps its promises when killed at any change",
          "[store][crash][S1][S2][S3][S4][S5][S6]") {
  crash_everywhere(Loss::nothing);
}

TEST_CASE("Store keeps its promises when unsynced contents are lost at any change",
          "[store][crash][S1][S2][S3][S4][S5][S6]") {
  crash_everywhere(Loss::data);
}

TEST_CASE("Store keeps its promises when unsynced names are lost at any change",
          "[store][crash][S1][S2][S3][S4][S5][S6]") {
  crash_everywhere(Loss::names);
}

TEST_CASE("Store keeps its promises when everything unsynced is lost at any change",
          "[store][crash][S1][S2][S3][S4][S5][S6]") {
  crash_everywhere(Loss::all);
}

namespace {

/// One error at `point` of the work; false when there is no such point. The work is done again.
bool fail_at(int point, int error) {
  FastDir dir;
  ErrorWatcher watcher;
  const auto steps = scenario();
  const auto store = open_store(dir / "root", small_options(&watcher));
  watcher.arm(point, error);
  for (const Step& step : steps) {
    INFO("point " << point << ", step " << step.name << ", failed at " << watcher.where());
    const bool before = watcher.fired();
    auto done = step.run(*store);
    if (!done) {
      REQUIRE(watcher.fired());
      REQUIRE_FALSE(before);
      CHECK(done.error().code == from_errno(error, "").code);
      check_invariants(*store);
      done = step.run(*store);
      if (!done) FAIL(done.error().message);
    }
    CHECK(step.holds(*store));
  }
  check_invariants(*store);
  return watcher.fired();
}

void fail_everywhere(int error) {
  int point = 0;
  while (fail_at(point, error)) {
    ++point;
  }
  CHECK(point > 100);
}

} // namespace

TEST_CASE("Store reports ENOSPC at any change and goes on when space returns", "[store][fault]") {
  fail_everywhere(ENOSPC);
}

TEST_CASE("Store reports EIO at any change and goes on", "[store][fault]") {
  fail_everywhere(EIO);
}

TEST_CASE("Store reports EDQUOT at any change and goes on", "[store][fault]") {
  fail_everywhere(EDQUOT);
}

TEST_CASE("Store reports EROFS at any change and goes on", "[store][fault]") {
  fail_everywhere(EROFS);
}

TEST_CASE("Store does not notice writes that are cut short", "[store][fault]") {
  FastDir dir;
  ErrorWatcher watcher;
  watcher.longest_write = 1;
  const auto store = open_store(dir / "root", small_options(&watcher));
  for (const Step& step : scenario()) {
    INFO(step.name);
    REQUIRE(step.run(*store));
    CHECK(step.holds(*store));
  }
  check_invariants(*store);
}

TEST_CASE("Store does not notice interrupted writes", "[store][fault]") {
  FastDir dir;
  ErrorWatcher watcher;
  watcher.matches = [](const store::DiskEvent& event) { return event.op == store::DiskOp::write; };
  const auto store = open_store(dir / "root", small_options(&watcher));
  for (const Step& step : scenario()) {
    INFO(step.name);
    watcher.arm(0, EINTR);
    REQUIRE(step.run(*store));
  }
  check_invariants(*store);
}

TEST_CASE("Store::open reports an error at any change and opens later", "[store][fault]") {
  for (int point = 0;; ++point) {
    FastDir dir;
    ErrorWatcher watcher;
    watcher.arm(point, ENOSPC);
    const auto opened = Store::open(dir / "root", small_options(&watcher));
    if (!watcher.fired()) {
      CHECK(point > 20);
      break;
    }
    INFO("point " << point << " " << watcher.where());
    if (!opened) CHECK(opened.error().code == Errc::no_space);
    if (opened) continue;
    open_store(dir / "root");
  }
}
