// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/counted.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  bool rebuild = false;
  bool repair = false;
  bool deep = false;
};

bool flag_of(const boost::json::object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

// What became of the index, where a new one was made.
std::string rebuild_text(const boost::json::object& result) {
  const auto* value = result.if_contains("rebuilt");
  if (value == nullptr || !value->is_object()) return {};
  const auto& rebuilt = value->get_object();
  const auto rows = json_uint(rebuilt, "rows").value_or(0);
  const auto unread = json_string(rebuilt, "unread").value_or("");
  const auto differences = json_array(rebuilt, "differences");
  if (!unread.empty()) {
    return fmt::format("index made again, {} rows; the old one could not be compared: {}\n", rows,
                       unread);
  }
  if (!differences || (*differences)->empty()) {
    return fmt::format("index made again, {} rows, equal to the old one row for row\n", rows);
  }
  std::string out = fmt::format("index made again, {} rows; it differs from the old one\n", rows);
  for (const auto& one : **differences) {
    if (!one.is_object()) continue;
    const auto& table = one.get_object();
    out += fmt::format("  {}: {} rows only in the old one, {} only in the new one\n",
                       json_string(table, "table").value_or(""),
                       json_uint(table, "only_old").value_or(0),
                       json_uint(table, "only_new").value_or(0));
  }
  return out;
}

std::string report(const boost::json::object& result) {
  std::string out = rebuild_text(result);
  const auto findings = json_array(result, "findings");
  for (const auto& value : findings ? **findings : boost::json::array{}) {
    if (!value.is_object()) continue;
    const auto& finding = value.get_object();
    out += fmt::format("{} {}: {}", json_string(finding, "id").value_or(""),
                       json_string(finding, "path").value_or(""),
                       json_string(finding, "message").value_or(""));
    const std::string remedy = json_string(finding, "remedy").value_or("");
    if (!remedy.empty()) {
      out += fmt::format(" [{}: {}]", flag_of(finding, "repaired") ? "repaired" : "remedy", remedy);
    }
    out += '\n';
  }
  return out + fmt::format("{}, {}, {}: {}",
                           counted(json_uint(result, "blobs").value_or(0), "blob"),
                           counted(json_uint(result, "snapshots").value_or(0), "snapshot"),
                           counted(json_uint(result, "variants").value_or(0), "variant"),
                           flag_of(result, "clean")
                               ? std::string("clean")
                               : counted(json_uint(result, "found").value_or(0), "finding"));
}

// Whether nothing is left to do.
bool all_repaired(const boost::json::object& result) {
  const auto findings = json_array(result, "findings");
  if (!findings || json_uint(result, "found").value_or(0) != (*findings)->size()) return false;
  for (const auto& value : **findings) {
    if (!value.is_object() || !flag_of(value.get_object(), "repaired")) return false;
  }
  return true;
}

Result<int> fsck(CommandContext& context, const Options& options) {
  Client client(context.socket, {});
  MODELD_ASSIGN(auto answer, client.post("/v1/fsck", {{"repair", options.repair},
                                                      {"deep", options.deep},
                                                      {"rebuild", options.rebuild}}));
  MODELD_ASSIGN(const auto result, finish(context, client, std::move(answer), Wait::yes));
  if (context.out.json()) {
    context.out.result(result);
  } else {
    context.out.text(report(result));
  }
  const bool good = flag_of(result, "clean") || all_repaired(result);
  return good ? 0 : info(Errc::corrupt).exit_status;
}

} // namespace

void add_fsck(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("fsck", "Compare the store's files, manifests and index");
  command->add_flag("--repair", options->repair,
                    "Put right what can be; nothing is deleted, what is wrong goes to quarantine");
  command->add_flag("--rebuild", options->rebuild,
                    "Make a new index out of the manifests first, and compare it with the old one");
  command->add_flag("--deep", options->deep, "Read every blob again");
  command->callback([&context, options] {
    context.run = [&context, options] { return fsck(context, *options); };
  });
}

} // namespace modeld::daemon
