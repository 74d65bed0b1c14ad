// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "daemon/size_text.hpp"
#include "daemon/watch.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  bool dry_run = false;
  bool all = false;
  bool ignore_open_files = false;
  std::string unused_for;
  std::string grace;
  std::string size_target;
  std::string free_target;
  std::string order;
};

Result<boost::json::object> body_of(const Options& options) {
  boost::json::object body{{"dry_run", options.dry_run},
                           {"ignore_open_files", options.ignore_open_files}};
  if (!options.unused_for.empty()) {
    MODELD_ASSIGN(body["unused_seconds"], parse_seconds(options.unused_for, "--unused-for"));
  }
  if (!options.grace.empty()) {
    MODELD_ASSIGN(body["grace_seconds"], parse_seconds(options.grace, "--grace"));
  }
  if (!options.size_target.empty()) {
    MODELD_ASSIGN(body["size_target"], parse_bytes(options.size_target, "--size-target"));
  }
  if (!options.free_target.empty()) {
    MODELD_ASSIGN(body["free_target"], parse_bytes(options.free_target, "--free-target"));
  }
  if (!options.order.empty()) body["order"] = options.order;
  return body;
}

std::string text_of(const boost::json::object& item, std::string_view name) {
  return json_string(item, name).value_or("");
}

// Why each thing goes, or with --all also why it stays.
std::string report(const boost::json::object& plan, const Options& options) {
  std::vector<std::vector<std::string>> rows{{"", "SIZE", "WHAT", "WHY", ""}};
  const auto items = json_array(plan, "items");
  for (const auto& value : items ? **items : boost::json::array{}) {
    if (!value.is_object()) continue;
    const auto& item = value.get_object();
    const auto* goes = item.if_contains("goes");
    const bool leaves = goes != nullptr && goes->is_bool() && goes->get_bool();
    if (!leaves && !options.all) continue;
    rows.push_back({leaves ? "goes" : "stays", human_bytes(json_uint(item, "bytes").value_or(0)),
                    text_of(item, "kind") + " " + text_of(item, "name"), text_of(item, "reason"),
                    text_of(item, "detail")});
  }
  std::string out = rows.size() == 1 ? std::string() : table(rows) + "\n";
  out += fmt::format("{} of {} {}", human_bytes(json_uint(plan, "won").value_or(0)),
                     human_bytes(json_uint(plan, "total").value_or(0)),
                     options.dry_run ? "would be freed" : "freed");
  if (const auto open = json_uint(plan, "not_freed").value_or(0); open > 0) {
    out += fmt::format(", {} of it when the processes that have it open end", human_bytes(open));
  }
  return out;
}

Result<int> gc(CommandContext& context, const Options& options) {
  MODELD_ASSIGN(const auto body, body_of(options));
  Client client(context.socket, {});
  MODELD_ASSIGN(auto answer, client.post("/v1/gc", body));
  MODELD_ASSIGN(const auto result, finish(context, client, std::move(answer), Wait::yes));
  if (context.out.json()) {
    context.out.result(result);
    return 0;
  }
  const auto* plan = result.if_contains("plan");
  if (plan == nullptr || !plan->is_object()) {
    return fail(Errc::internal, "reading the daemon's answer: it has no 'plan'");
  }
  context.out.text(report(plan->get_object(), options));
  return 0;
}

} // namespace

void add_gc(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("gc", "Free the space of what nothing names any more");
  command->add_flag("-n,--dry-run", options->dry_run, "Only say what would go, and why");
  command->add_flag("-a,--all", options->all, "Also say why things stay");
  command->add_option("--unused-for", options->unused_for,
                      "Also what nobody used for so long, as in 30d");
  command->add_option("--grace", options->grace,
                      "How long unnamed content and unfinished downloads are kept for a pull to go "
                      "on with; 1d and 7d without");
  command->add_option("--size-target", options->size_target,
                      "Go on with the least recently used until no more than this is kept");
  command->add_option("--free-target", options->free_target,
                      "Go on with the least recently used until this much is free");
  command->add_option("--order", options->order, "For the targets: variants_first or least_recent");
  command->add_flag("--ignore-open-files", options->ignore_open_files,
                    "Remove also what a process has open; it keeps its bytes until it ends");
  command->callback(
      [&context, options] { context.run = [&context, options] { return gc(context, *options); }; });
}

} // namespace modeld::daemon
