// SPDX-License-Identifier: Apache-2.0
#include "daemon/inspection.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/worker_tasks.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

namespace json = boost::json;

// What is asked about the file.
struct Wish {
  std::string path; ///< as it is shown
  std::string key;
  bool full = false;
  bool json = false;
};

Result<Wish> read_wish(const boost::json::object& options) {
  Wish wish;
  MODELD_ASSIGN(wish.path, json_string(options, "path"));
  MODELD_ASSIGN(wish.key, json_string(options, "key"));
  const auto flag = [&options](std::string_view name) {
    const auto* value = options.if_contains(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  };
  wish.full = flag("full");
  wish.json = flag("json");
  return wish;
}

Result<std::string> answer(const Inspection& file, const Wish& wish) {
  if (wish.key.empty())
    return wish.json ? safe_json(inspection_json(file)) : inspection_text(file, wish.full);
  const Inspection::Item* item = file.find(wish.key);
  if (item == nullptr)
    return fail(Errc::not_found,
                fmt::format("inspecting '{}': there is no key '{}'", wish.path, wish.key));
  if (!wish.json) return inspection_value(*item);
  return safe_json({{"key", wish.key}, {"type", item->type()}, {"value", inspection_json(*item)}});
}

} // namespace

Result<void> worker_inspect(const WorkerTask& task) {
  MODELD_ASSIGN(const Wish wish, read_wish(task.request.options));
  const auto& entries = task.files.entries();
  if (entries.size() != 1)
    return fail(Errc::malformed, "parsing a worker's request: one file can be inspected");
  MODELD_ASSIGN(const auto bytes, task.files.bytes(entries.front().path));
  validate::Report report(wish.path, validate::Profile::compat);
  MODELD_ASSIGN(const Inspection file, inspect(bytes, wish.path, report));
  json::array messages;
  for (const validate::Finding& finding : report.findings()) {
    if (finding.severity != validate::Severity::error) continue;
    messages.emplace_back(fmt::format("{} ({})", finding.message, finding.rule));
  }
  MODELD_ASSIGN(std::string text, answer(file, wish));
  return send_text(task, safe_json(json::object{{"accepted", report.accepted()},
                                                {"messages", std::move(messages)},
                                                {"text", std::move(text)}}));
}

} // namespace modeld::daemon
