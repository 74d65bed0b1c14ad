// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_engine.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <future>
#include <map>
#include <stdexcept>

using namespace modeld;
using namespace modeld::daemon;
using Catch::Contains;
using store::JobState;

namespace {

constexpr std::chrono::seconds k_deadline{20};

class MemoryRecords final : public JobRecords {
public:
  Result<void> put(const store::JobRecord& record) override {
    const auto all = records_.lock();
    if (refuse_) return fail(Errc::no_space, "writing a record: full");
    (*all)[record.id] = record;
    return {};
  }
  Result<std::vector<store::JobRecord>> list() override {
    const auto all = records_.lock();
    std::vector<store::JobRecord> out;
    for (const auto& [id, record] : *all) {
      out.push_back(record);
    }
    return out;
  }
  Result<void> remove(std::string_view id) override {
    records_.lock()->erase(std::string(id));
    return {};
  }
  store::JobRecord at(const std::string& id) { return records_.lock()->at(id); }
  std::size_t size() { return records_.lock()->size(); }
  void refuse(bool on) { refuse_ = on; }

private:
  Guarded<std::map<std::string, store::JobRecord>> records_;
  std::atomic<bool> refuse_{false};
};

JobRequest request(std::string key) {
  JobRequest out;
  out.kind = "pull";
  out.ref = "org/name";
  out.key = std::move(key);
  out.detail = {{"n", 5}};
  out.uid = 7;
  return out;
}

bool wait_finished(const Job& job) {
  std::uint64_t seen = 0;
  const auto deadline = std::chrono::steady_clock::now() + k_deadline;
  while (!job.finished() && std::chrono::steady_clock::now() < deadline) {
    job.wait_event(seen, std::chrono::milliseconds(100));
    for (const JobEvent& event : job.events_after(seen)) {
      seen = event.number;
    }
  }
  return job.finished();
}

// A job that runs until it is cancelled.
Result<boost::json::object> endless(Job& job) {
  job.begin_phase("downloading", 100);
  while (!job.cancelled()) {
    job.wait_event(UINT64_MAX, std::chrono::milliseconds(1));
  }
  return fail(Errc::cancelled, "stopped");
}

} // namespace

TEST_CASE("JobEngine runs a job and keeps its result", "[daemon][jobs]") {
  MemoryRecords records;
  JobEngine engine(records, {});
  engine.add_kind("pull", 1, [](Job& job) -> Result<boost::json::object> {
    job.begin_phase("downloading", 10);
    job.progress().done = 10;
    return boost::json::object{{"answer", job.detail().at("n")}};
  });
  const auto job = engine.submit(request("a"));
  REQUIRE(job);
  REQUIRE(wait_finished(**job));
  const api::Job view = (*job)->view();
  CHECK(view.state == "done");
  CHECK(view.result->at("answer").as_int64() == 5);
  CHECK(wait_finished(**job));
  CHECK(records.at((*job)->id()).state == JobState::done);
  CHECK(engine.find((*job)->id()).value() == *job);
  CHECK(engine.find("absent").error().code == Errc::not_found);
}

TEST_CASE("JobEngine: equal requests share one unfinished job, later ones get a new one",
          "[daemon][jobs][rule-8]") {
  MemoryRecords records;
  JobEngine engine(records, {});
  std::promise<void> go;
  const auto gate = go.get_future().share();
  engine.add_kind("pull", 2, [gate](Job&) -> Result<boost::json::object> {
    gate.wait();
    return boost::json::object{};
  });
  const auto one = engine.submit(request("same")).value();
  auto again = request("same");
  again.uid = 8;
  const auto two = engine.submit(std::move(again)).value();
  const auto other = engine.submit(request("other")).value();
  CHECK(one == two);
  CHECK(one != other);
  CHECK(one->has_user(7));
  CHECK(one->has_user(8));
  CHECK_FALSE(one->has_user(9));
  go.set_value();
  REQUIRE(wait_finished(*one));
  CHECK(engine.submit(request("same")).value() != one);
}

TEST_CASE("JobEngine: an error, an exception and a refused record are told", "[daemon][jobs]") {
  MemoryRecords records;
  JobEngine engine(records, {});
  engine.add_kind("pull", 1, [](Job& job) -> Result<boost::json::object> {
    if (job.key() == "throw") throw std::runtime_error("boom");
    return fail(Error{Errc::malformed, "reading 'x': bad", "look", {{"rule", "ST-02"}}, 0});
  });
  const auto failed = engine.submit(request("fail")).value();
  REQUIRE(wait_finished(*failed));
  CHECK(failed->view().state == "failed");
  CHECK(failed->view().error->details.front().second == "ST-02");
  const auto thrown = engine.submit(request("throw")).value();
  REQUIRE(wait_finished(*thrown));
  CHECK(thrown->view().error->code == Errc::internal);
  CHECK_THAT(thrown->view().error->message, Contains("boom"));
  records.refuse(true);
  CHECK(engine.submit(request("full")).error().code == Errc::no_space);
  records.refuse(false);
  CHECK(engine.submit(request("full")).has_value());
}

TEST_CASE("JobEngine refuses more unfinished jobs than its limit", "[daemon][jobs][rule-6]") {
  MemoryRecords records;
  JobEngine engine(records, {2, 10});
  engine.add_kind("pull", 1, endless);
  REQUIRE(engine.submit(request("a")));
  REQUIRE(engine.submit(request("b")));
  const auto third = engine.submit(request("c"));
  REQUIRE_FALSE(third);
  CHECK(third.error().code == Errc::busy);
  CHECK_THAT(third.error().message, Contains("2 jobs are unfinished, allowed are 2"));
}

TEST_CASE("JobEngine forgets the oldest finished jobs", "[daemon][jobs][rule-6]") {
  MemoryRecords records;
  JobEngine engine(records, {10, 2});
  engine.add_kind("pull", 1,
                  [](Job&) -> Result<boost::json::object> { return boost::json::object{}; });
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    const auto job = engine.submit(request("k" + std::to_string(i))).value();
    REQUIRE(wait_finished(*job));
    ids.push_back(job->id());
  }
  engine.stop(k_deadline);
  CHECK(records.size() == 2);
  CHECK_FALSE(engine.find(ids[0]).has_value());
  CHECK(engine.find(ids[3]).has_value());
}

TEST_CASE("JobEngine::cancel ends a running and a waiting job, but no finished one",
          "[daemon][jobs]") {
  MemoryRecords records;
  JobEngine engine(records, {});
  engine.add_kind("pull", 1, endless);
  const auto running = engine.submit(request("a")).value();
  const auto waiting = engine.submit(request("b")).value();
  CHECK(engine.cancel(*waiting));
  CHECK(waiting->view().state == "cancelled");
  CHECK(engine.cancel(*running));
  REQUIRE(wait_finished(*running));
  CHECK(running->view().state == "cancelled");
  CHECK(records.at(running->id()).state == JobState::cancelled);
  CHECK(engine.cancel(*running).error().code == Errc::conflict);
}

TEST_CASE("JobEngine: a stop leaves jobs unfinished, and the next start runs them",
          "[daemon][jobs][restart]") {
  MemoryRecords records;
  std::string first;
  std::string second;
  {
    JobEngine engine(records, {});
    engine.add_kind("pull", 1, endless);
    const auto running = engine.submit(request("a")).value();
    first = running->id();
    second = engine.submit(request("b")).value()->id();
    std::uint64_t seen = 0;
    while (running->view().phase != "downloading") {
      running->wait_event(seen, std::chrono::milliseconds(100));
      for (const auto& event : running->events_after(seen)) {
        seen = event.number;
      }
    }
    CHECK(engine.stop(k_deadline));
    CHECK(engine.submit(request("c")).error().code == Errc::busy);
  }
  CHECK_FALSE(store::is_final(records.at(first).state));
  JobEngine engine(records, {});
  engine.add_kind("pull", 1, [](Job& job) -> Result<boost::json::object> {
    return boost::json::object{{"n", job.detail().at("n")}};
  });
  REQUIRE(engine.start());
  for (const std::string& id : {first, second}) {
    const auto job = engine.find(id).value();
    REQUIRE(wait_finished(*job));
    CHECK(job->view().state == "done");
    CHECK(job->view().result->at("n").as_int64() == 5);
    CHECK(job->ref() == "org/name");
    CHECK(job->has_user(7));
  }
}

TEST_CASE("JobEngine::follow mirrors the other job and gives its outcome", "[daemon][jobs]") {
  MemoryRecords records;
  JobEngine engine(records, {});
  std::promise<void> go;
  const auto gate = go.get_future().share();
  engine.add_kind("pull", 1, [gate](Job& job) -> Result<boost::json::object> {
    job.begin_phase("downloading", 100);
    job.progress().done = 40;
    gate.wait();
    return boost::json::object{{"x", 1}};
  });
  engine.add_kind("variant", 1, [&engine](Job& job) -> Result<boost::json::object> {
    auto child = request("child");
    child.by_client = false;
    return engine.follow(job, engine.submit(std::move(child)).value());
  });
  auto asked = request("parent");
  asked.kind = "variant";
  const auto parent = engine.submit(std::move(asked)).value();
  const auto deadline = std::chrono::steady_clock::now() + k_deadline;
  while (parent->view().done != 40 && std::chrono::steady_clock::now() < deadline) {
    parent->wait_event(UINT64_MAX, std::chrono::milliseconds(5));
  }
  CHECK(parent->view().phase == "downloading");
  CHECK(parent->view().total == 100);
  go.set_value();
  REQUIRE(wait_finished(*parent));
  CHECK(parent->view().result->at("x").as_int64() == 1);
}

TEST_CASE("JobEngine::follow takes the other job along when cancelled, unless someone wants it",
          "[daemon][jobs]") {
  MemoryRecords records;
  JobEngine engine(records, {});
  engine.add_kind("pull", 2, endless);
  engine.add_kind("variant", 2, [&engine](Job& job) -> Result<boost::json::object> {
    auto child = request("child " + job.key());
    child.by_client = false;
    return engine.follow(job, engine.submit(std::move(child)).value());
  });
  for (const bool wanted : {false, true}) {
    auto asked = request(wanted ? "wanted" : "alone");
    const std::string child_key = "child " + asked.key;
    asked.kind = "variant";
    const auto parent = engine.submit(std::move(asked)).value();
    std::shared_ptr<Job> child;
    const auto deadline = std::chrono::steady_clock::now() + k_deadline;
    while (child == nullptr && std::chrono::steady_clock::now() < deadline) {
      for (const auto& job : engine.list()) {
        if (job->key() == child_key && job->view().state == "running") child = job;
      }
    }
    REQUIRE(child != nullptr);
    if (wanted) CHECK(engine.submit(request(child_key)).value() == child);
    REQUIRE(engine.cancel(*parent));
    REQUIRE(wait_finished(*parent));
    if (wanted) {
      CHECK_FALSE(child->finished());
    } else {
      CHECK(wait_finished(*child));
    }
  }
}
