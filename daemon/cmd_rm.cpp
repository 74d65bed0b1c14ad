// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

namespace modeld::daemon {
namespace {

Result<int> remove(CommandContext& context, const std::string& ref) {
  MODELD_TRY(check_ref(ref));
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.remove("/v1/snapshots/" + url_part(ref)));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const auto* removed, json_array(answer.body, "removed"));
  for (const auto& name : *removed) {
    if (name.is_string()) context.out.text(std::string_view(name.get_string()));
  }
  return 0;
}

} // namespace

void add_rm(CLI::App& app, CommandContext& context) {
  auto ref = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("rm", "Forget a snapshot and what was built from it, or one file");
  command->add_option("ref", *ref, "org/name[@revision][:QUANTIZATION or file]")->required();
  command->callback(
      [&context, ref] { context.run = [&context, ref] { return remove(context, *ref); }; });
}

} // namespace modeld::daemon
