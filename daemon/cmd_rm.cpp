// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  std::string ref;
  bool force = false;
};

Result<int> remove(CommandContext& context, const Options& options) {
  MODELD_TRY(check_ref(options.ref));
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.remove("/v1/snapshots/" + url_part(options.ref),
                                                 {{"force", options.force}}));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const auto* removed, json_array(answer.body, "removed"));
  for (const auto& name : *removed) {
    if (name.is_string()) context.out.text(std::string_view(name.get_string()));
  }
  const auto left = json_array(answer.body, "left");
  for (const auto& path : left ? **left : boost::json::array{}) {
    if (path.is_string()) {
      context.out.message(
          fmt::format("left, somebody changed it: {}", std::string_view(path.get_string())));
    }
  }
  return 0;
}

} // namespace

void add_rm(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("rm", "Forget a snapshot and what was built from it, or one file");
  command->add_option("ref", options->ref, "org/name[@revision][:QUANTIZATION or file]")
      ->required();
  command->add_flag("-f,--force", options->force,
                    "Also while somebody uses it; readers keep their bytes until they end");
  command->callback([&context, options] {
    context.run = [&context, options] { return remove(context, *options); };
  });
}

} // namespace modeld::daemon
