// SPDX-License-Identifier: Apache-2.0
#include "daemon/local_check.hpp"

#include "daemon/check_input.hpp"
#include "daemon/check_report.hpp"
#include "daemon/worker_process.hpp"
#include "schema/json.hpp"
#include "validate/escape.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <map>
#include <optional>

namespace modeld::daemon {
namespace {

namespace json = boost::json;

constexpr std::size_t k_longest_path = 4096;

/// What a PATH that cannot be opened as it is gives in place of findings.
std::optional<json::object> as_finding(const Error& error, const std::string& path) {
  if (error.code != Errc::malformed && error.code != Errc::denied) return std::nullopt;
  validate::CheckedFile file{path, "other", validate::Report(path)};
  file.report.error("GN-01", std::nullopt, validate::escape_text(error.message, 1000), error.hint);
  return json::object{{"files", json::array{check_json(file)}}};
}

WorkerRequest request_of(const CheckInput& input, const LocalCheck& how) {
  WorkerRequest request;
  request.task = WorkerRequest::Task::report;
  request.name = how.name.empty() ? std::string(input.files().name()) : how.name;
  request.files = input.files().entries();
  request.threads = how.threads;
  request.options = {{"findings", how.findings},
                     {"profile", how.profile},
                     {"data", how.data},
                     {"estimate", how.estimate},
                     {"context", how.context}};
  return request;
}

// Findings of one run over an input: the worker's, and what only the opener of the files knows.
class InputCheck {
public:
  explicit InputCheck(const CheckInput& input) : input_(input) {}

  Result<json::object> run(const LocalCheck& how, Progress& progress) {
    const auto open = [this](std::size_t index) -> Result<Descriptor> {
      auto file = input_.open_file(index);
      if (file) return file;
      unopened_.emplace(index, std::move(file).error());
      return Descriptor();
    };
    MODELD_ASSIGN(const auto text, read_from_worker(request_of(input_, how), open, progress));
    MODELD_ASSIGN(auto value, parse_json(text, "a worker's report"));
    if (!value.is_object()) return fail(Errc::internal, "parsing a worker's report: no object");
    json::object report = std::move(value.get_object());
    if (auto* files = report.if_contains("files"); files != nullptr && files->is_array()) {
      complete(files->get_array());
      add_left_out(files->get_array());
    }
    return report;
  }

  /// For a worker that died: a file that shrinks under the map takes it along.
  std::optional<json::object> changed_only() const {
    json::array files;
    for (const std::string& path : input_.changed()) {
      json::object file{{"path", shown(path)}, {"format", "other"}, {"findings", json::array{}}};
      add_changed(file);
      files.push_back(std::move(file));
    }
    if (files.empty()) return std::nullopt;
    return json::object{{"files", std::move(files)}};
  }

private:
  std::string shown(std::string_view path) const {
    return validate::escape_text(input_.shown(path), k_longest_path);
  }

  static void add_changed(json::object& file) {
    add_error(file, "GN-07", "the file changed while it was checked",
              "check it again when nobody writes to it");
  }

  void complete(json::array& files) const {
    const auto changed = input_.changed();
    const auto& entries = input_.files().entries();
    for (auto& value : files) {
      if (!value.is_object()) continue;
      json::object& file = value.get_object();
      const auto index = json_uint(file, "file");
      file.erase("file");
      if (!index || *index >= entries.size()) {
        file["path"] = shown(".");
        continue;
      }
      const std::string& path = entries[*index].path;
      file["path"] = shown(path);
      if (const auto error = unopened_.find(*index); error != unopened_.end())
        add_error(file, "GN-01", validate::escape_text(error->second.message, 1000), "");
      if (std::find(changed.begin(), changed.end(), path) != changed.end()) add_changed(file);
    }
  }

  void add_left_out(json::array& files) const {
    for (const store::LeftOut& one : input_.left_out()) {
      json::object file{
          {"path", shown(one.path)}, {"format", "other"}, {"findings", json::array{}}};
      add_error(file, "GN-01", validate::escape_text(one.why.message, 1000), one.why.hint);
      files.push_back(std::move(file));
    }
  }

  const CheckInput& input_;
  std::map<std::size_t, Error> unopened_;
};

} // namespace

Result<json::object> check_local(const std::string& path, const LocalCheck& how,
                                 Progress& progress) {
  auto input = CheckInput::open(path);
  if (!input) {
    if (auto file = as_finding(input.error(), path)) return *std::move(file);
    return fail(std::move(input).error());
  }
  InputCheck check(*input);
  auto report = check.run(how, progress);
  if (!report && report.error().code != Errc::cancelled) {
    if (auto changed = check.changed_only()) return *std::move(changed);
  }
  return report;
}

} // namespace modeld::daemon
