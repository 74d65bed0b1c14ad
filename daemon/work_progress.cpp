// SPDX-License-Identifier: Apache-2.0
#include "daemon/work_progress.hpp"

#include "daemon/human_text.hpp"
#include "daemon/terminal_width.hpp"
#include "schema/api.hpp"

#include <atomic>
#include <chrono>
#include <csignal>

namespace modeld::daemon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds k_between_frames{200};

std::atomic<Progress*> g_interrupted{nullptr}; // whom a signal cancels
static_assert(std::atomic<Progress*>::is_always_lock_free);

struct sigaction g_old_int;  // NOLINT(readability-identifier-naming)
struct sigaction g_old_term; // NOLINT(readability-identifier-naming)

extern "C" void cancel_work(int) {
  if (Progress* progress = g_interrupted.load()) progress->cancel.store(true);
}

api::Job job_of(const std::string& phase, const Progress& progress, double seconds) {
  api::Job job;
  job.phase = phase;
  job.done = progress.done.load();
  job.total = progress.total.load();
  if (seconds > 0) job.rate = static_cast<std::uint64_t>(static_cast<double>(job.done) / seconds);
  return job;
}

} // namespace

WorkProgress::WorkProgress(Output& out, Progress& progress, std::string phase)
    : out_(out), progress_(progress), phase_(std::move(phase)) {
  g_interrupted.store(&progress_);
  struct sigaction action {};
  action.sa_handler = cancel_work;
  sigaction(SIGINT, &action, &g_old_int);
  sigaction(SIGTERM, &action, &g_old_term);
  if (out_.terminal() && !out_.quiet()) thread_ = std::thread([this] { draw(); });
}

WorkProgress::~WorkProgress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  sigaction(SIGINT, &g_old_int, nullptr);
  sigaction(SIGTERM, &g_old_term, nullptr);
  g_interrupted.store(nullptr);
}

void WorkProgress::draw() {
  const auto start = Clock::now();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, k_between_frames, [this] { return stop_; })) {
    const std::chrono::duration<double> passed = Clock::now() - start;
    out_.progress(progress_line(job_of(phase_, progress_, passed.count()), terminal_width()));
  }
  out_.progress("");
}

} // namespace modeld::daemon
