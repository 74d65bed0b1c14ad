// SPDX-License-Identifier: Apache-2.0
#include "daemon/work_progress.hpp"

#include <fmt/format.h>

#include <array>
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

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> k_units{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < k_units.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, k_units[unit]);
}

std::string frame(const std::string& phase, double done, double total, double seconds) {
  const double rate = seconds > 0 ? done / seconds : 0;
  if (total <= 0) return fmt::format("{} {}", phase, bytes_text(done));
  const double left = rate > 0 ? (total - done) / rate : 0;
  return fmt::format("{} {:3.0f} %  {} of {}  {}/s  {:.0f} s left", phase, 100 * done / total,
                     bytes_text(done), bytes_text(total), bytes_text(rate), left);
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
    out_.progress(frame(phase_, static_cast<double>(progress_.done.load()),
                        static_cast<double>(progress_.total.load()), passed.count()));
  }
  out_.progress("");
}

} // namespace modeld::daemon
