// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_request.hpp"

#include "daemon/safe_json.hpp"
#include "schema/api_recipe.hpp"
#include "schema/json.hpp"
#include "validate/escape.hpp"

#include <boost/json.hpp>

#include <array>
#include <utility>

namespace modeld::daemon {
namespace {

using Task = WorkerRequest::Task;

constexpr std::array<std::pair<Task, std::string_view>, 9> k_tasks{
    {{Task::check, "check"},
     {Task::check_each, "check_each"},
     {Task::architecture, "architecture"},
     {Task::build, "build"},
     {Task::report, "report"},
     {Task::inspect, "inspect"},
     {Task::measure, "measure"},
     {Task::audit, "audit"},
     {Task::facts, "facts"}}};

std::string_view task_name(Task task) {
  for (const auto& [known, name] : k_tasks) {
    if (known == task) return name;
  }
  return {};
}

Result<Task> read_task(std::string_view name) {
  for (const auto& [task, known] : k_tasks) {
    if (known == name) return task;
  }
  return fail(Errc::malformed, "parsing a worker's request: an unknown task");
}

/// A name on the disk is bytes; JSON holds only those that are UTF-8.
boost::json::object write_path(const std::string& path) {
  if (validate::utf8_valid_prefix(path) == path.size()) return {{"path", path}};
  boost::json::array bytes;
  for (const char c : path)
    bytes.emplace_back(static_cast<unsigned char>(c));
  return {{"path", std::move(bytes)}};
}

Result<std::string> read_path(const boost::json::object& from) {
  const auto* value = from.if_contains("path");
  if (value == nullptr || !value->is_array()) return json_string(from, "path");
  std::string path;
  for (const auto& byte : value->get_array()) {
    const auto* number = byte.if_int64();
    if (number == nullptr || *number < 0 || *number > 255)
      return fail(Errc::malformed, "parsing a worker's request: a path that is no text");
    path += static_cast<char>(*number);
  }
  return path;
}

Result<std::vector<FileSet::Entry>> read_files(const boost::json::object& from) {
  std::vector<FileSet::Entry> files;
  MODELD_ASSIGN(const auto* list, json_array(from, "files"));
  files.reserve(list->size());
  for (const auto& value : *list) {
    if (!value.is_object()) return fail(Errc::malformed, "reading a worker's request: no object");
    FileSet::Entry entry;
    MODELD_ASSIGN(entry.path, read_path(value.get_object()));
    MODELD_ASSIGN(entry.size, json_uint(value.get_object(), "size"));
    files.push_back(std::move(entry));
  }
  return files;
}

} // namespace

std::string WorkerRequest::to_json() const {
  boost::json::array list;
  list.reserve(files.size());
  for (const FileSet::Entry& file : files) {
    boost::json::object entry = write_path(file.path);
    entry["size"] = file.size;
    list.push_back(std::move(entry));
  }
  return safe_json({{"task", task_name(task)},
                    {"name", name},
                    {"files", std::move(list)},
                    {"target", recipe.target},
                    {"via", recipe.via},
                    {"recipe", api::recipe_to_json(recipe)},
                    {"options", options},
                    {"threads", threads},
                    {"memory", memory}});
}

Result<WorkerRequest> WorkerRequest::from_json(std::string_view text) {
  MODELD_ASSIGN(const auto value, parse_json(text, "a worker's request"));
  if (!value.is_object()) return fail(Errc::malformed, "parsing a worker's request: no object");
  const auto& from = value.get_object();
  WorkerRequest request;
  MODELD_ASSIGN(const auto task, json_string(from, "task"));
  MODELD_ASSIGN(request.task, read_task(task));
  MODELD_ASSIGN(request.name, json_string(from, "name"));
  MODELD_ASSIGN(request.files, read_files(from));
  MODELD_ASSIGN(const auto target, json_string(from, "target"));
  const auto* overrides = from.if_contains("recipe");
  if (overrides == nullptr || !overrides->is_object()) {
    return fail(Errc::malformed, "parsing a worker's request: no recipe");
  }
  MODELD_ASSIGN(request.recipe, api::recipe_from_json(target, overrides->get_object()));
  MODELD_ASSIGN(request.recipe.via, json_string(from, "via"));
  const auto* options = from.if_contains("options");
  if (options == nullptr || !options->is_object()) {
    return fail(Errc::malformed, "parsing a worker's request: no options");
  }
  request.options = options->get_object();
  MODELD_ASSIGN(const auto threads, json_uint(from, "threads"));
  request.threads = static_cast<std::uint32_t>(threads);
  MODELD_ASSIGN(request.memory, json_uint(from, "memory"));
  return request;
}

} // namespace modeld::daemon
