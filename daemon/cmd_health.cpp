// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

Result<int> health(CommandContext& context) {
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.get("/v1/health"));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const auto root, json_string(answer.body, "root"));
  MODELD_ASSIGN(const auto up, json_uint(answer.body, "uptime_seconds"));
  context.out.text(fmt::format("ok, serving {} for {}", root, human_duration(up)));
  return 0;
}

Result<int> usage(CommandContext& context) {
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.get("/v1/usage"));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  const auto number = [&answer](std::string_view name) {
    return json_uint(answer.body, name).value_or(0);
  };
  context.out.text(table({
      {"snapshots", fmt::format("{}", number("snapshots")), human_bytes(number("snapshot_bytes"))},
      {"variants", fmt::format("{}", number("variants")), human_bytes(number("variant_bytes"))},
      {"reserved", "", human_bytes(number("reserved"))},
      {"free", "", human_bytes(number("free"))},
      {"capacity", "", human_bytes(number("capacity"))},
  }));
  return 0;
}

} // namespace

void add_health(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("health", "Whether the daemon answers");
  command->callback([&context] { context.run = [&context] { return health(context); }; });
}

void add_usage(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("usage", "Show space, by what it is used for");
  command->callback([&context] { context.run = [&context] { return usage(context); }; });
}

} // namespace modeld::daemon
