// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/estimate.hpp"
#include "daemon/local_check.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/stored_folder.hpp"
#include "daemon/work_progress.hpp"
#include "schema/api.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace modeld::daemon {
namespace {

struct Options {
  std::string path;
  std::uint64_t context = 0;
};

Result<int> show_estimate(CommandContext& context, const Options& options) {
  MODELD_ASSIGN(const auto stored, path_or_stored(context, options.path));
  LocalCheck how;
  how.name = stored.model;
  how.findings = false;
  how.estimate = true;
  how.context = options.context;
  Progress progress;
  boost::json::object report;
  {
    const WorkProgress shown(context.out, progress, "estimating");
    MODELD_ASSIGN(report, check_local(stored.path, how, progress));
  }
  const auto* why = report.if_contains("no_estimate");
  if (why != nullptr && why->is_object()) return fail(api::error_from_json(why->get_object()));
  const auto* told = report.if_contains("estimate");
  if (told == nullptr || !told->is_object())
    return fail(Errc::malformed, fmt::format("estimating '{}': it cannot be read", options.path),
                fmt::format("modelctl check {} says why", options.path));
  MODELD_ASSIGN(const Estimate estimate, estimate_from_json(told->get_object()));
  if (context.out.json())
    context.out.result(safe_json(estimate_json(estimate)));
  else
    context.out.text(estimate_text(estimate));
  return 0;
}

} // namespace

void add_estimate(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "estimate", "Tell how large each recipe of a model is, on the disk and in memory");
  command->add_option("path", options->path, "A folder, a GGUF file, or a ref of what was pulled")
      ->required();
  command->add_option("--context", options->context,
                      "Tokens that memory is told for (default: 8192, or what it was trained for)");
  command->callback([&context, options] {
    context.run = [&context, options] { return show_estimate(context, *options); };
  });
}

} // namespace modeld::daemon
