// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/job.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace modeld::daemon {

/// Where jobs survive the daemon. Any thread.
class JobRecords {
public:
  JobRecords() = default;
  JobRecords(const JobRecords&) = delete;
  JobRecords& operator=(const JobRecords&) = delete;
  virtual ~JobRecords() = default;

  virtual Result<void> put(const store::JobRecord& record) = 0;
  virtual Result<std::vector<store::JobRecord>> list() = 0; ///< newest first
  virtual Result<void> remove(std::string_view id) = 0;
};

struct JobLimits {
  std::uint64_t max_unfinished = 256;
  std::uint64_t keep_finished = 200;
};

/// Runs jobs on threads of their own, away from the connections. Owned by the daemon; any thread.
///
/// 1. A job that was acknowledged is in the records, until it is finished and forgotten.
/// 2. Unfinished jobs with equal keys are one job.
/// 3. A job that the daemon's end interrupts stays unfinished and runs again at the next start.
/// 4. A finished job never changes.
class JobEngine {
public:
  /// What a kind of job does. Runs on a worker thread; looks at job.cancelled() ten times a second
  /// and then ends with Errc::cancelled. An exception fails the job.
  using Run = std::function<Result<boost::json::object>(Job&)>;

  JobEngine(JobRecords& records, JobLimits limits);
  ~JobEngine(); ///< stops without waiting for a better moment

  /// Before start(). At most `threads` jobs of the kind run at once.
  void add_kind(std::string kind, std::size_t threads, Run run);
  /// Before start(). Called on the worker thread.
  void on_finished(std::function<void(const Job&)> call) { on_finished_ = std::move(call); }
  /// Reads the records and runs what was not finished.
  Result<void> start();
  /// Asks every job to stop where it can go on later, and waits so long. Whether all did.
  bool stop(std::chrono::milliseconds time);

  /// A new job, or the unfinished one with this key. busy beyond the limit.
  Result<std::shared_ptr<Job>> submit(JobRequest request);
  /// not_found.
  Result<std::shared_ptr<Job>> find(std::string_view id) const;
  /// Newest first.
  std::vector<std::shared_ptr<Job>> list() const;
  /// conflict where it is finished already.
  Result<void> cancel(Job& job);

  /// For a job that needs another one: mirrors its phases and bytes until it is finished, and gives
  /// its outcome. Where `parent` is cancelled and nobody else wants the child, so is the child.
  Result<boost::json::object> follow(Job& parent, const std::shared_ptr<Job>& child);

private:
  struct Kind {
    Run run;
    std::size_t threads = 1;
    std::size_t started = 0;
    std::size_t idle = 0;
    std::deque<std::shared_ptr<Job>> queue;
  };
  struct State {
    std::map<std::string, Kind, std::less<>> kinds;
    std::map<std::string, std::shared_ptr<Job>, std::less<>> jobs;
    std::map<std::string, std::shared_ptr<Job>, std::less<>> unfinished; ///< by key
    std::deque<std::string> finished;                                    ///< ids, oldest first
    std::vector<std::thread> threads;
    std::size_t running = 0;
    bool stopping = false;
  };

  void enqueue(State& state, const std::shared_ptr<Job>& job);
  void work(const std::string& kind);
  void run_one(const Run& run, const std::shared_ptr<Job>& job);
  void finished(const std::shared_ptr<Job>& job);
  void save(const Job& job);

  JobRecords& records_;
  JobLimits limits_;
  std::function<void(const Job&)> on_finished_;
  mutable Guarded<State> state_;
  std::condition_variable work_;
  std::condition_variable idle_;
};

} // namespace modeld::daemon
