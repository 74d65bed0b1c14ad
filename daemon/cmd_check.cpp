// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_report.hpp"
#include "daemon/commands.hpp"
#include "daemon/counted.hpp"
#include "daemon/estimate.hpp"
#include "daemon/local_check.hpp"
#include "daemon/request.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/stored_folder.hpp"
#include "daemon/watch.hpp"
#include "daemon/work_progress.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

namespace modeld::daemon {
namespace {

namespace json = boost::json;

struct Options {
  std::vector<std::string> paths;
  bool data = false;
  bool all = false;
  bool remote = false;
  std::string profile = "strict";
  unsigned threads = 0;
  std::uint64_t context = 0;
};

void append(json::array& all, json::object& report) {
  auto* files = report.if_contains("files");
  if (files == nullptr || !files->is_array()) return;
  for (auto& file : files->get_array())
    all.push_back(std::move(file));
}

Result<int> show(CommandContext& context, const Options& given, json::object report) {
  MODELD_ASSIGN(const auto* files, json_array(report, "files"));
  const CheckTotals totals = count(*files);
  if (context.out.json())
    context.out.result(safe_json(report));
  else
    MODELD_TRY(print_check(context.out, *files, given.all));
  context.out.message(fmt::format("{}: {} rejected, {} with warnings",
                                  counted(totals.files, "file"), totals.rejected, totals.warned));
  return totals.rejected > 0 ? info(Errc::malformed).exit_status : 0;
}

Result<int> check_here(CommandContext& context, const Options& given) {
  LocalCheck how;
  how.profile = given.profile;
  how.data = given.data;
  how.threads =
      given.threads > 0 ? given.threads : std::max(1U, std::thread::hardware_concurrency());
  json::array files;
  Progress progress;
  for (const std::string& argument : given.paths) {
    MODELD_ASSIGN(const auto stored, path_or_stored(context, argument));
    how.name = stored.model;
    const WorkProgress shown(context.out, progress, "checking");
    MODELD_ASSIGN(auto report, check_local(stored.path, how, progress));
    append(files, report);
  }
  return show(context, given, {{"files", std::move(files)}});
}

// One ref, of which only headers and small files are read.
Result<int> check_remote(CommandContext& context, const Options& given) {
  if (given.paths.size() != 1 || given.data) {
    return fail(Errc::invalid_argument, "checking --remote: one ref is allowed, and no --data",
                "pull the model to check its tensor data");
  }
  const std::string& ref = given.paths.front();
  MODELD_TRY(check_ref(ref));
  MODELD_ASSIGN(const auto token, caller_token());
  Client client(context.socket, token);
  const json::object body{{"ref", ref}, {"profile", given.profile}, {"context", given.context}};
  MODELD_ASSIGN(auto answer, client.post("/v1/checks", body));
  MODELD_ASSIGN(json::object report, finish(context, client, std::move(answer), Wait::yes));
  MODELD_ASSIGN(const int status, show(context, given, report));
  if (context.out.json()) return status;
  const auto* told = report.if_contains("estimate");
  if (told != nullptr && told->is_object()) {
    MODELD_ASSIGN(const Estimate estimate, estimate_from_json(told->get_object()));
    context.out.text("\n" + estimate_text(estimate));
  }
  const auto* why = report.if_contains("no_estimate");
  if (why != nullptr && why->is_object()) {
    const Error error = api::error_from_json(why->get_object());
    context.out.text(fmt::format("\nit cannot be converted: {}", error.message));
    if (!error.hint.empty()) context.out.message(error.hint);
    return status != 0 ? status : info(error.code).exit_status;
  }
  context.out.message(fmt::format("{} bytes were read of {}",
                                  json_uint(report, "bytes_read").value_or(0),
                                  json_uint(report, "bytes").value_or(0)));
  return status;
}

} // namespace

void add_check(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Check model files and repositories");
  command->add_option("path", options->paths, "Files, folders, and refs of what was pulled")
      ->required();
  command->add_flag("--data", options->data, "Scan tensor data too, not only headers");
  command->add_flag("--remote", options->remote,
                    "A ref, before it is pulled: read headers and small files from the Hub, and "
                    "tell what it becomes");
  command->add_option("--context", options->context,
                      "With --remote: tokens that memory is told for (default: 8192, or fewer)");
  command
      ->add_option("--profile", options->profile,
                   "strict, or compat: what the formats' own readers take")
      ->check(CLI::IsMember({"strict", "compat"}));
  command->add_flag("-a,--all", options->all, "List files without findings and notes too");
  command->add_option("-j,--jobs", options->threads, "Files at once (default: processors)")
      ->check(CLI::Range(1, 1024));
  command->callback([&context, options] {
    context.run = [&context, options] {
      return options->remote ? check_remote(context, *options) : check_here(context, *options);
    };
  });
}

} // namespace modeld::daemon
