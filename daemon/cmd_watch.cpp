// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

Result<int> watch(CommandContext& context, const std::string& id) {
  Client client(context.socket, {});
  MODELD_TRY(client.get("/v1/jobs/" + url_part(id)));
  MODELD_ASSIGN(const auto result, watch_job(context, client, id));
  return show_result(context, result, result.contains("variant") ? "variant" : "snapshot");
}

Result<int> cancel(CommandContext& context, const std::string& id) {
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.remove("/v1/jobs/" + url_part(id)));
  if (context.out.json()) {
    context.out.result(answer.body);
  } else {
    context.out.message(fmt::format("job '{}' is told to stop", id));
  }
  return 0;
}

void add_job_command(CLI::App& app, CommandContext& context, const char* name,
                     const char* description,
                     Result<int> (*run)(CommandContext&, const std::string&)) {
  auto id = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("job", *id, "Its id, from modelctl jobs")->required();
  command->callback(
      [&context, id, run] { context.run = [&context, id, run] { return run(context, *id); }; });
}

} // namespace

void add_watch(CLI::App& app, CommandContext& context) {
  add_job_command(app, context, "watch", "Watch a job, and print what it comes to", watch);
}

void add_cancel(CLI::App& app, CommandContext& context) {
  add_job_command(app, context, "cancel", "End a job; what was downloaded is kept", cancel);
}

} // namespace modeld::daemon
