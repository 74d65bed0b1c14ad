// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_report.hpp"
#include "daemon/estimate.hpp"
#include "daemon/worker_tasks.hpp"
#include "schema/api.hpp"
#include "schema/json.hpp"
#include "schema/progress.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace modeld::daemon {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds k_between_counts{100};

// Tells the owner how far the work is, while this lives.
class CountSender {
public:
  CountSender(const WorkerChannel& channel, const Progress& progress)
      : channel_(channel), progress_(progress), thread_([this] { run(); }) {}
  CountSender(const CountSender&) = delete;
  CountSender& operator=(const CountSender&) = delete;
  ~CountSender() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, k_between_counts, [this] { return stop_; })) {
      std::array<std::byte, 2 * sizeof(std::uint64_t)> packet;
      put(std::span(packet).first<8>(), progress_.done);
      put(std::span(packet).last<8>(), progress_.total);
      if (!channel_.send(Packet::progress, packet)) return; // the work will meet the same end
    }
  }
  static void put(std::span<std::byte, 8> to, std::uint64_t number) {
    for (std::byte& byte : to) {
      byte = static_cast<std::byte>(number & 0xffU);
      number >>= 8U;
    }
  }

  const WorkerChannel& channel_;
  const Progress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

bool flag(const json::object& options, std::string_view name) {
  const auto* value = options.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

json::array findings(const WorkerTask& task) {
  const json::object& options = task.request.options;
  Progress progress;
  validate::CheckOptions how;
  how.profile = json_string(options, "profile").value_or("") == "compat"
                    ? validate::Profile::compat
                    : validate::Profile::strict;
  how.data = flag(options, "data");
  how.threads = std::max(1U, task.request.threads);
  how.progress = &progress;
  const CountSender counts(task.channel, progress);
  json::array out;
  const auto& entries = task.files.entries();
  for (const validate::CheckedFile& file : validate::check_repository(task.files, how)) {
    json::object item = check_json(file);
    const auto at = std::lower_bound(
        entries.begin(), entries.end(), file.path,
        [](const FileSet::Entry& entry, const std::string& path) { return entry.path < path; });
    if (at != entries.end() && at->path == file.path) item["file"] = at - entries.begin();
    out.push_back(std::move(item));
  }
  return out;
}

} // namespace

Result<void> worker_report(const WorkerTask& task) {
  const json::object& options = task.request.options;
  json::object report;
  if (flag(options, "findings")) report["files"] = findings(task);
  if (flag(options, "estimate")) {
    const auto context = json_uint(options, "context").value_or(0);
    auto told = estimate(task.files, context);
    if (told) {
      report["estimate"] = estimate_json(*told);
    } else {
      report["no_estimate"] = api::error_to_json(told.error());
    }
  }
  return send_text(task, json::serialize(report));
}

} // namespace modeld::daemon
