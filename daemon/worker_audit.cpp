// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit.hpp"
#include "daemon/count_sender.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/worker_tasks.hpp"
#include "schema/json.hpp"
#include "schema/progress.hpp"

#include <boost/json.hpp>

namespace modeld::daemon {
namespace {

namespace json = boost::json;

/// The files of a set below one folder, as a set of their own.
class FilesBelow final : public FileSet {
public:
  FilesBelow(const FileSet& all, std::string folder, std::string_view name)
      : all_(all), folder_(std::move(folder)), name_(name) {
    for (const Entry& entry : all.entries())
      if (entry.path.starts_with(folder_))
        entries_.push_back({entry.path.substr(folder_.size()), entry.size});
  }
  std::string_view name() const override { return name_; }
  const std::vector<Entry>& entries() const override { return entries_; }
  Result<std::span<const std::byte>> bytes(std::string_view path) const override {
    return all_.bytes(folder_ + std::string(path));
  }
  void trim() const override { all_.trim(); }

private:
  const FileSet& all_;
  std::string folder_;
  std::string name_;
  std::vector<Entry> entries_;
};

bool flag(const json::object& options, std::string_view name) {
  const auto* value = options.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

} // namespace

Result<void> worker_audit(const WorkerTask& task) {
  const json::object& options = task.request.options;
  const FilesBelow model(task.files, std::string(k_audit_model), task.files.name());
  const FilesBelow outputs(task.files, std::string(k_audit_output), "");
  const std::string path = json_string(options, "gguf").value_or("");
  std::optional<AuditedOutput> output;
  if (!path.empty()) output.emplace(AuditedOutput{outputs, path});
  Progress progress;
  Result<Audit> result;
  {
    const CountSender counts(task.channel, progress);
    result = audit(model, output, progress);
  }
  if (!result) return fail(std::move(result).error());
  const std::string text = flag(options, "json") ? safe_json(audit_json(*result))
                                                 : audit_text(*result, flag(options, "every"));
  return send_text(task, safe_json(json::object{{"balanced", result->balanced()}, {"text", text}}));
}

} // namespace modeld::daemon
