// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output.hpp"
#include "schema/result.hpp"

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace modeld::daemon {

/// What modelctl shares with each of its commands. A command is one file, cmd_<name>.cpp, with one
/// function `void add_<name>(CLI::App&, CommandContext&)`, which declares the subcommand and its
/// options and leaves what to do in `run` from the subcommand's callback:
///
///     auto options = std::make_shared<Options>();
///     CLI::App* command = app.add_subcommand("frob", "Frobs a file");
///     command->add_option("file", options->file, "The file")->required();
///     command->callback([&context, options] {
///       context.run = [&context, options] { return frob(context, *options); };
///     });
///
/// The function is listed once, in commands.cpp. `--json`, `--quiet` and `--socket` are global, and
/// stand before or after the name of the command.
struct CommandContext {
  Output out;
  std::string socket; ///< --socket, MODELD_SOCKET, or the default; never empty after parsing
  /// Set by the chosen command. Gives the exit status; an error is shown by modelctl and gives the
  /// status of its code.
  std::function<Result<int>()> run;
};

/// Declares every command.
void add_commands(CLI::App& app, CommandContext& context);

/// Parses, runs, shows errors; the process's exit status. 2 for wrong usage.
int run_modelctl(int argc, char** argv);

} // namespace modeld::daemon
