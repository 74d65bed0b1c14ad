// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_engine.hpp"

#include "daemon/log.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>

namespace modeld::daemon {
namespace {

// Eight characters without those that look alike: 40 random bits, short enough to type.
std::string new_id() {
  constexpr std::string_view k_letters = "0123456789abcdefghjkmnpqrstvwxyz";
  std::array<unsigned char, 8> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    throw std::bad_alloc(); // cannot happen for 8 bytes once the system is up
  }
  std::string id;
  for (const unsigned char byte : random) {
    id += k_letters[byte % k_letters.size()];
  }
  return id;
}

Result<boost::json::object> guarded(const JobEngine::Run& run, Job& job) {
  try {
    return run(job);
  } catch (const std::bad_alloc&) {
    return fail(Errc::internal, fmt::format("running job '{}': out of memory", job.id()));
  } catch (const std::exception& error) {
    return fail(Errc::internal, fmt::format("running job '{}': {}", job.id(), error.what()));
  }
}

Error cancelled_error(const Job& job) {
  return {Errc::cancelled,
          fmt::format("job '{}' for '{}' was cancelled", job.id(), job.ref()),
          "what was downloaded is kept: ask again to go on",
          {},
          0};
}

} // namespace

JobEngine::JobEngine(JobRecords& records, JobLimits limits) : records_(records), limits_(limits) {}

JobEngine::~JobEngine() {
  stop(std::chrono::milliseconds(0));
  std::vector<std::thread> threads;
  {
    const auto state = state_.lock();
    threads = std::move(state->threads);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void JobEngine::add_kind(std::string kind, std::size_t threads, Run run) {
  const auto state = state_.lock();
  Kind& added = state->kinds[std::move(kind)];
  added.run = std::move(run);
  added.threads = threads;
}

Result<void> JobEngine::start() {
  MODELD_ASSIGN(auto records, records_.list());
  const auto state = state_.lock();
  std::reverse(records.begin(), records.end()); // oldest first
  for (const store::JobRecord& record : records) {
    auto job = Job::from_record(record);
    job->on_change([this](const Job& changed) { save(changed); });
    state->jobs.emplace(job->id(), job);
    if (store::is_final(record.state)) {
      state->finished.push_back(job->id());
      continue;
    }
    log_info("job {}: going on with {} '{}'", job->id(), job->kind(), job->ref());
    state->unfinished.emplace(job->key(), job);
    enqueue(*state, job);
  }
  return {};
}

bool JobEngine::stop(std::chrono::milliseconds time) {
  auto state = state_.lock();
  state->stopping = true;
  for (const auto& [key, job] : state->unfinished) {
    job->progress().cancel = true;
  }
  work_.notify_all();
  return idle_.wait_for(state.mutex(), time, [&state] { return state->running == 0; });
}

Result<std::shared_ptr<Job>> JobEngine::submit(JobRequest request) {
  std::shared_ptr<Job> job;
  const bool by_client = request.by_client;
  const auto limit_rate = request.limit_rate;
  {
    auto state = state_.lock();
    if (state->stopping) {
      return fail(Errc::busy, "starting a job: the daemon is stopping", "try again in a moment");
    }
    const auto same = state->unfinished.find(request.key);
    if (same != state->unfinished.end()) {
      same->second->add_user(request.uid);
      if (by_client) same->second->set_by_client();
      job = same->second;
      state.mutex().unlock(); // a change is written to the disk
      if (limit_rate) job->set_limit_rate(*limit_rate);
      return job;
    }
    if (state->unfinished.size() >= limits_.max_unfinished) {
      return fail(Errc::busy,
                  fmt::format("starting a job: {} jobs are unfinished, allowed are {}",
                              state->unfinished.size(), limits_.max_unfinished),
                  "try again when some are done; jobs.max_unfinished sets the limit");
    }
    job = std::make_shared<Job>(new_id(), std::move(request), store::now());
    job->on_change([this](const Job& changed) { save(changed); });
    state->jobs.emplace(job->id(), job);
    state->unfinished.emplace(job->key(), job);
  }
  // Not under the lock: this writes to the disk. Until the job is in a queue nobody runs it.
  if (auto put = records_.put(job->record()); !put) {
    const auto state = state_.lock();
    state->jobs.erase(job->id());
    state->unfinished.erase(job->key());
    job->finish(fail(put.error()));
    return fail(std::move(put).error().context(fmt::format("starting a job for '{}'", job->ref())));
  }
  const auto state = state_.lock();
  enqueue(*state, job);
  return job;
}

// With the state locked.
void JobEngine::enqueue(State& state, const std::shared_ptr<Job>& job) {
  const auto at = state.kinds.find(job->kind());
  if (at == state.kinds.end()) {
    log_error("job {}: nothing here runs jobs of kind '{}'", job->id(), job->kind());
    return;
  }
  Kind& kind = at->second;
  kind.queue.push_back(job);
  if (kind.idle < kind.queue.size() && kind.started < kind.threads) {
    ++kind.started;
    state.threads.emplace_back([this, name = at->first] { work(name); });
  }
  work_.notify_all();
}

void JobEngine::work(const std::string& name) {
  auto state = state_.lock();
  Kind& kind = state->kinds.find(name)->second; // kinds are not removed
  while (true) {
    ++kind.idle;
    work_.wait(state.mutex(), [&] { return state->stopping || !kind.queue.empty(); });
    --kind.idle;
    if (state->stopping) return;
    const std::shared_ptr<Job> job = kind.queue.front();
    kind.queue.pop_front();
    if (job->finished()) continue; // cancelled while it waited
    ++state->running;
    state.mutex().unlock();
    run_one(kind.run, job);
    state.mutex().lock();
    --state->running;
    idle_.notify_all();
  }
}

void JobEngine::run_one(const Run& run, const std::shared_ptr<Job>& job) {
  job->set_running();
  log_info("job {}: {} '{}' for user {}", job->id(), job->kind(), job->ref(), job->uid());
  auto outcome = job->cancelled() ? fail(cancelled_error(*job)) : guarded(run, *job);
  if (!outcome && outcome.error().code == Errc::cancelled) {
    if (state_.lock()->stopping) {
      log_info("job {}: interrupted, goes on at the next start", job->id());
      return;
    }
    outcome = fail(cancelled_error(*job));
  }
  if (outcome) {
    log_info("job {}: done", job->id());
  } else {
    log_warning("job {}: {} [{}]", job->id(), outcome.error().message,
                info(outcome.error().code).slug);
  }
  // No longer shared before it is seen as finished: who asks from now on gets a new job.
  state_.lock()->unfinished.erase(job->key());
  job->finish(std::move(outcome));
  finished(job);
}

// Forgets the oldest beyond the limit.
void JobEngine::finished(const std::shared_ptr<Job>& job) {
  if (on_finished_) on_finished_(*job);
  std::vector<std::string> forgotten;
  {
    const auto state = state_.lock();
    state->finished.push_back(job->id());
    while (state->finished.size() > limits_.keep_finished) {
      forgotten.push_back(state->finished.front());
      state->jobs.erase(state->finished.front());
      state->finished.pop_front();
    }
  }
  for (const std::string& id : forgotten) {
    if (auto removed = records_.remove(id); !removed) {
      log_warning("forgetting job {}: {}", id, removed.error().message);
    }
  }
}

void JobEngine::save(const Job& job) {
  if (auto put = records_.put(job.record()); !put) {
    log_error("job {}: keeping its record: {}", job.id(), put.error().message);
  }
}

Result<std::shared_ptr<Job>> JobEngine::find(std::string_view id) const {
  const auto state = state_.lock();
  const auto at = state->jobs.find(id);
  if (at != state->jobs.end()) return at->second;
  return fail(Errc::not_found, fmt::format("looking for job '{}': there is none", id),
              "modelctl jobs lists the jobs");
}

std::vector<std::shared_ptr<Job>> JobEngine::list() const {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    const auto state = state_.lock();
    for (const auto& [id, job] : state->jobs) {
      jobs.push_back(job);
    }
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const auto& a, const auto& b) { return a->created() > b->created(); });
  return jobs;
}

Result<void> JobEngine::cancel(Job& job) {
  std::shared_ptr<Job> queued;
  {
    const auto state = state_.lock();
    const auto at = state->unfinished.find(job.key());
    if (at == state->unfinished.end() || at->second.get() != &job) {
      return fail(Errc::conflict, fmt::format("cancelling job '{}': it is finished", job.id()));
    }
    job.progress().cancel = true;
    auto& queue = state->kinds.find(job.kind())->second.queue;
    const auto waiting = std::find(queue.begin(), queue.end(), at->second);
    if (waiting != queue.end()) {
      queued = at->second;
      queue.erase(waiting);
      state->unfinished.erase(at);
    }
  }
  if (queued != nullptr) {
    queued->finish(fail(cancelled_error(*queued)));
    finished(queued);
  }
  return {};
}

Result<boost::json::object> JobEngine::follow(Job& parent, const std::shared_ptr<Job>& child) {
  constexpr std::chrono::milliseconds k_step{50};
  std::uint64_t seen = 0;
  std::string phase;
  child->add_follower();
  while (true) {
    child->wait_event(seen, k_step);
    const auto events = child->events_after(seen);
    if (!events.empty()) seen = events.back().number;
    const api::Job view = child->view();
    if (view.finished()) {
      child->drop_follower();
      if (view.error) return fail(*view.error);
      return view.result.value_or(boost::json::object{});
    }
    if (parent.cancelled()) {
      if (child->drop_follower()) (void)cancel(*child);
      return fail(cancelled_error(parent));
    }
    if (view.phase != phase) {
      phase = view.phase;
      parent.begin_phase(phase, view.total);
    }
    parent.set_notice(view.notice);
    parent.progress().total = view.total;
    parent.progress().done = view.done;
  }
}

} // namespace modeld::daemon
