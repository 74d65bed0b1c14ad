// SPDX-License-Identifier: Apache-2.0
#include "daemon/job.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>

// The record's request, JSON: {"ref":"...","key":"...","detail":{...},"users":[uid,...],
// "limit_rate":n}; without the last for no limit.

namespace modeld::daemon {
namespace {

using std::chrono::steady_clock;
using store::JobState;

constexpr std::chrono::milliseconds k_sample_every{200};
constexpr std::chrono::seconds k_rate_window{5};

boost::json::object object_or_empty(const std::string& text) {
  auto value = parse_json(text.empty() ? "{}" : text, "a job's record");
  return value && value->is_object() ? value->get_object() : boost::json::object{};
}

} // namespace

Job::Job(std::string id, JobRequest request, store::UnixTime created)
    : id_(std::move(id)), kind_(std::move(request.kind)), key_(std::move(request.key)),
      ref_(std::move(request.ref)), detail_(std::move(request.detail)), uid_(request.uid),
      token_(std::move(request.token)), created_(created),
      bandwidth_(std::make_shared<fetch::Bandwidth>(request.limit_rate.value_or(0))),
      by_client_(request.by_client) {
  const auto shown = shown_.lock();
  shown->updated = created;
  shown->users.insert(uid_);
}

std::shared_ptr<Job> Job::from_record(const store::JobRecord& record) {
  const boost::json::object request = object_or_empty(record.request);
  JobRequest asked;
  asked.kind = record.kind;
  asked.uid = record.uid;
  asked.ref = json_string(request, "ref").value_or("");
  asked.key = json_string(request, "key").value_or("");
  if (const auto* detail = request.if_contains("detail"); detail && detail->is_object()) {
    asked.detail = detail->get_object();
  }
  if (const auto limit = json_uint(request, "limit_rate")) asked.limit_rate = *limit;
  auto job = std::make_shared<Job>(record.id, std::move(asked), record.created);
  const auto shown = job->shown_.lock();
  if (const auto users = json_array(request, "users")) {
    for (const auto& uid : **users) {
      if (uid.is_int64()) shown->users.insert(static_cast<std::uint32_t>(uid.get_int64()));
    }
  }
  shown->updated = record.updated;
  job->progress_.done = record.done;
  job->progress_.total = record.total;
  if (store::is_final(record.state)) {
    shown->state = record.state;
    shown->phase = record.phase;
    shown->result = object_or_empty(record.result);
    if (record.state != JobState::done) {
      shown->error = api::error_from_json(object_or_empty(record.error));
    }
  }
  return job;
}

store::JobRecord Job::record() const {
  const auto shown = shown_.lock();
  boost::json::array users;
  for (const std::uint32_t uid : shown->users) {
    users.push_back(uid);
  }
  store::JobRecord record;
  record.id = id_;
  record.kind = kind_;
  record.state = shown->state;
  record.phase = shown->phase;
  boost::json::object request{
      {"ref", ref_}, {"key", key_}, {"detail", detail_}, {"users", std::move(users)}};
  if (const std::uint64_t limit = bandwidth_->limit(); limit != 0) request["limit_rate"] = limit;
  record.request = boost::json::serialize(request);
  if (shown->state == JobState::done) record.result = boost::json::serialize(shown->result);
  if (store::is_final(shown->state) && shown->state != JobState::done) {
    record.error = boost::json::serialize(api::error_to_json(shown->error));
  }
  record.done = progress_.done;
  record.total = progress_.total;
  record.uid = uid_;
  record.created = created_;
  record.updated = shown->updated;
  return record;
}

void Job::on_change(std::function<void(const Job&)> save) {
  save_ = std::move(save);
}

void Job::begin_phase(std::string_view phase, std::uint64_t total) {
  auto lock = shown_.lock();
  progress_.done = 0;
  progress_.total = total;
  lock->samples.clear();
  lock->notice.clear();
  if (lock->phase == phase) return;
  lock->phase = phase;
  changed(std::move(lock));
}

void Job::set_notice(std::string_view notice) {
  auto lock = shown_.lock();
  if (lock->notice == notice) return;
  lock->notice = notice;
  changed(std::move(lock));
}

void Job::set_limit_rate(std::uint64_t bytes_per_second) {
  auto lock = shown_.lock();
  if (bandwidth_->limit() == bytes_per_second || store::is_final(lock->state)) return;
  bandwidth_->set_limit(bytes_per_second);
  lock->samples.clear(); // the rate before says nothing about the one now
  changed(std::move(lock));
}

void Job::set_running() {
  auto lock = shown_.lock();
  lock->state = JobState::running;
  changed(std::move(lock));
}

void Job::finish(Result<boost::json::object> outcome) {
  auto lock = shown_.lock();
  lock->notice.clear();
  if (outcome) {
    lock->state = JobState::done;
    lock->result = *std::move(outcome);
  } else {
    lock->state = outcome.error().code == Errc::cancelled ? JobState::cancelled : JobState::failed;
    lock->error = std::move(outcome).error();
  }
  changed(std::move(lock));
}

// Makes the event, saves the record, then wakes. Saving and waking happen without the lock, so that
// either may look at the job; the record is taken under a lock of its own, so that an older one
// never overwrites a newer one.
void Job::changed(Guarded<Shown>::Lock lock) {
  lock->updated = store::now();
  JobEvent event{++lock->last_number, store::is_final(lock->state), view_locked(*lock)};
  lock->events.push_back(std::move(event));
  if (lock->events.size() > k_kept_events) lock->events.pop_front();
  const std::map<std::uint64_t, std::function<void()>> wake = lock->subscribers;
  lock.mutex().unlock();
  if (save_) {
    const std::lock_guard saving(save_mutex_);
    save_(*this);
  }
  news_.notify_all();
  for (const auto& [number, call] : wake) {
    call();
  }
}

api::Job Job::view_locked(Shown& shown) const {
  const auto now = steady_clock::now();
  const std::uint64_t done = progress_.done;
  if (shown.samples.empty() || now - shown.samples.back().at >= k_sample_every) {
    shown.samples.push_back({now, done});
    while (now - shown.samples.front().at > k_rate_window) {
      shown.samples.pop_front();
    }
  }
  api::Job view;
  const Sample& first = shown.samples.front();
  const std::chrono::duration<double> seconds = now - first.at;
  if (seconds.count() > 0 && done > first.done) {
    view.rate =
        static_cast<std::uint64_t>(static_cast<double>(done - first.done) / seconds.count());
  }
  view.id = id_;
  view.kind = kind_;
  view.ref = ref_;
  view.state = store::slug(shown.state);
  view.phase = shown.phase;
  view.notice = shown.notice;
  view.done = done;
  view.total = progress_.total;
  view.limit_rate = bandwidth_->limit();
  view.uid = uid_;
  view.created = created_;
  view.updated = shown.updated;
  if (shown.state == JobState::done) view.result = shown.result;
  if (store::is_final(shown.state) && shown.state != JobState::done) view.error = shown.error;
  return view;
}

api::Job Job::view() const {
  const auto lock = shown_.lock();
  return view_locked(*lock);
}

bool Job::finished() const {
  return store::is_final(shown_.lock()->state);
}

std::vector<JobEvent> Job::events_after(std::uint64_t number) const {
  const auto lock = shown_.lock();
  std::vector<JobEvent> found;
  for (const JobEvent& event : lock->events) {
    if (event.number > number) found.push_back(event);
  }
  // A job of an earlier life, or a reader from before a restart: the end is told all the same.
  if (found.empty() && store::is_final(lock->state)) {
    found.push_back({lock->last_number, true, view_locked(*lock)});
  }
  return found;
}

Job::Subscription Job::subscribe(std::function<void()> wake) {
  const auto lock = shown_.lock();
  const std::uint64_t number = lock->next_subscriber++;
  lock->subscribers.emplace(number, std::move(wake));
  return Subscription(this, [number](Job* job) { job->shown_.lock()->subscribers.erase(number); });
}

void Job::wait_event(std::uint64_t number, std::chrono::milliseconds time) const {
  auto lock = shown_.lock();
  news_.wait_for(lock.mutex(), time, [&lock, number] {
    return (!lock->events.empty() && lock->events.back().number > number) ||
           store::is_final(lock->state);
  });
}

void Job::add_user(std::uint32_t uid) {
  shown_.lock()->users.insert(uid);
}

bool Job::has_user(std::uint32_t uid) const {
  return shown_.lock()->users.contains(uid);
}

} // namespace modeld::daemon
