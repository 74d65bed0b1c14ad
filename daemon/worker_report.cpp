// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_report.hpp"
#include "daemon/count_sender.hpp"
#include "daemon/estimate.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/worker_tasks.hpp"
#include "quantize/convert/describe.hpp"
#include "schema/api.hpp"
#include "schema/json.hpp"
#include "schema/progress.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace modeld::daemon {
namespace {

namespace json = boost::json;

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
  how.plan = quantize::describe_checkpoint;
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
  return send_text(task, safe_json(report));
}

} // namespace modeld::daemon
