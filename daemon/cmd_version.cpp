// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/version_text.hpp"
#include "schema/version.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

namespace modeld::daemon {
namespace {

Result<int> version(CommandContext& context) {
  if (context.out.json()) {
    context.out.result(boost::json::object{
        {"version", k_version}, {"converter", k_converter_version}, {"reference", k_reference}});
  } else {
    context.out.result(version_text("modelctl"));
  }
  return 0;
}

} // namespace

void add_version(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("version", "Show versions of modelctl and the daemon");
  command->callback([&context] { context.run = [&context] { return version(context); }; });
}

} // namespace modeld::daemon
