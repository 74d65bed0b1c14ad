// SPDX-License-Identifier: Apache-2.0
#include "daemon/command.hpp"
#include "daemon/paths.hpp"
#include "daemon/usage_error.hpp"
#include "daemon/version_text.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>

namespace modeld::daemon {
namespace {

void add_globals(CLI::App& app, CommandContext& context, bool& json, bool& quiet) {
  app.fallthrough();
  app.require_subcommand(1);
  app.set_version_flag("--version", [] { return version_text("modelctl"); });
  app.set_help_all_flag("--help-all", "Print the help of every command");
  app.add_option("--socket", context.socket, "The daemon's socket")->envname("MODELD_SOCKET");
  app.add_flag("--json", json, "One JSON object on stdout");
  app.add_flag("-q,--quiet", quiet, "No progress and no messages, errors only");
}

// A full disk must not look like success; the status where the result has arrived.
int arrived(Output& out, int status = 0) {
  if (out.flush() || status != 0) return status;
  out.error(Error{Errc::io, "writing the result to stdout: it did not arrive", {}, {}, 0});
  return info(Errc::io).exit_status;
}

// --help and --version end the parsing as well, with something to print.
int report(CLI::App& app, Output& out, const CLI::ParseError& parsed) {
  if (parsed.get_exit_code() != 0) {
    const Error error = usage_error(app, parsed);
    out.error(error);
    return info(error.code).exit_status;
  }
  std::ostringstream result;
  std::ostringstream ignored;
  app.exit(parsed, result, ignored);
  std::string text = result.str();
  if (!text.empty() && text.back() == '\n') text.pop_back();
  out.text(text);
  return arrived(out);
}

// Exceptions of libraries stop here and become an error of ours.
Result<int> guarded_run(const CommandContext& context) {
  try {
    return context.run();
  } catch (const std::bad_alloc&) {
    return fail(Errc::internal, "running the command: out of memory");
  } catch (const std::exception& error) {
    return fail(Errc::internal, fmt::format("running the command: {}", error.what()));
  }
}

} // namespace

int run_modelctl(int argc, char** argv) {
  // A limit on the size of files is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  CommandContext context;
  CLI::App app("Model repository: pull, convert, quantize and use models", "modelctl");
  bool json = false;
  bool quiet = false;
  add_globals(app, context, json, quiet);
  add_commands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // The parser may have stopped before it came to --json.
    const auto is_json = [](std::string_view word) { return word == "--json"; };
    context.out.set_json(json || std::any_of(argv + 1, argv + argc, is_json));
    return report(app, context.out, error);
  }
  context.out.set_json(json);
  context.out.set_quiet(quiet);
  if (context.socket.empty()) context.socket = default_socket();
  auto status = guarded_run(context);
  if (!status) {
    context.out.error(status.error());
    status = info(status.error().code).exit_status;
  }
  return arrived(context.out, *status);
}

} // namespace modeld::daemon
