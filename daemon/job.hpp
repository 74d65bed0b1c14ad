// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/bandwidth.hpp"
#include "fetch/token.hpp"
#include "schema/api.hpp"
#include "schema/guarded.hpp"
#include "schema/progress.hpp"
#include "store/records.hpp"

#include <boost/json/object.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// What is asked of the job engine.
struct JobRequest {
  std::string kind;           ///< "pull", "variant"
  std::string ref;            ///< for people
  std::string key;            ///< equal keys share one unfinished job
  boost::json::object detail; ///< what the kind needs to run, also after a restart
  std::uint32_t uid = 0;
  fetch::Token token;    ///< in memory only, never in a record
  bool by_client = true; ///< false: asked for by another job, which cancels it when it gives up
  /// Bytes per second that it may download, 0 for no limit. Who joins a job sets it anew; without,
  /// it stays as it is.
  std::optional<std::uint64_t> limit_rate;
};

/// A state, phase or notice that was new, with its number in this job's life.
struct JobEvent {
  std::uint64_t number = 0;
  bool last = false;
  api::Job job;
};

/// One job while the daemon lives. Shared by engine, worker, sessions; every member may be called
/// from any thread. What survives the daemon is its record.
class Job {
public:
  Job(std::string id, JobRequest request, store::UnixTime created);
  /// Out of a record of an earlier life; finished, or to be run again.
  static std::shared_ptr<Job> from_record(const store::JobRecord& record);
  store::JobRecord record() const;

  const std::string& id() const { return id_; }
  const std::string& kind() const { return kind_; }
  const std::string& key() const { return key_; }
  const std::string& ref() const { return ref_; }
  const boost::json::object& detail() const { return detail_; }
  std::uint32_t uid() const { return uid_; }
  store::UnixTime created() const { return created_; }
  const fetch::Token& token() const { return token_; }
  /// Bytes of the current phase, and the wish to stop.
  Progress& progress() { return progress_; }
  bool cancelled() const { return progress_.cancel.load(); }
  /// What it may download a second; a Hub client of the job's keeps it, also when it changes.
  const std::shared_ptr<fetch::Bandwidth>& bandwidth() const { return bandwidth_; }
  /// Durable, and told to subscribers.
  void set_limit_rate(std::uint64_t bytes_per_second);

  // ---- for the worker
  /// Resets the counters.
  void begin_phase(std::string_view phase, std::uint64_t total = 0);
  /// What the job waits for, in words; empty when it goes on.
  void set_notice(std::string_view notice);
  /// Called at each change of state or phase, before subscribers: makes it durable.
  void on_change(std::function<void(const Job&)> save);
  void set_running();
  /// Final.
  void finish(Result<boost::json::object> outcome);

  // ---- for everyone else
  api::Job view() const;
  bool finished() const;
  /// Events with higher numbers; at most the latest k_kept_events.
  std::vector<JobEvent> events_after(std::uint64_t number) const;
  /// Called after each event, on the thread that made it, until the subscription is dropped.
  using Subscription = std::shared_ptr<void>;
  Subscription subscribe(std::function<void()> wake);
  /// Until there is an event behind `number`, or the time is over.
  void wait_event(std::uint64_t number, std::chrono::milliseconds time) const;

  /// Who takes part: may see and cancel it.
  void add_user(std::uint32_t uid);
  bool has_user(std::uint32_t uid) const;
  void set_by_client() { by_client_.store(true); }
  void add_follower() { ++followers_; }
  /// Whether nobody wants the job any more.
  bool drop_follower() { return --followers_ == 0 && !by_client_.load(); }

  static constexpr std::size_t k_kept_events = 64;

private:
  struct Sample {
    std::chrono::steady_clock::time_point at;
    std::uint64_t done = 0;
  };
  struct Shown {
    store::JobState state = store::JobState::queued;
    std::string phase;
    std::string notice;
    store::UnixTime updated = 0;
    boost::json::object result;
    Error error;
    std::deque<JobEvent> events;
    std::uint64_t last_number = 0;
    std::deque<Sample> samples; ///< for the rate; the last few seconds
    std::set<std::uint32_t> users;
    std::map<std::uint64_t, std::function<void()>> subscribers;
    std::uint64_t next_subscriber = 0;
  };

  void changed(Guarded<Shown>::Lock lock);
  api::Job view_locked(Shown& shown) const;

  std::string id_;
  std::string kind_;
  std::string key_;
  std::string ref_;
  boost::json::object detail_;
  std::uint32_t uid_ = 0;
  fetch::Token token_;
  store::UnixTime created_ = 0;
  std::shared_ptr<fetch::Bandwidth> bandwidth_;
  Progress progress_;
  std::atomic<bool> by_client_{true};
  std::atomic<int> followers_{0};
  std::function<void(const Job&)> save_;
  std::mutex save_mutex_;
  mutable Guarded<Shown> shown_;
  mutable std::condition_variable news_;
};

} // namespace modeld::daemon
