// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "daemon/version_text.hpp"
#include "schema/json.hpp"
#include "schema/version.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

// Ours always; the daemon's where it answers.
Result<int> version(CommandContext& context) {
  Client client(context.socket, {});
  const auto answer = client.get("/v1/version");
  if (context.out.json()) {
    boost::json::object out{{"version", k_version},
                            {"converter", k_converter_version},
                            {"reference", k_reference},
                            {"kernel", kernel_text()}};
    if (answer) out["daemon"] = answer->body;
    context.out.result(out);
    return 0;
  }
  context.out.text(version_text("modelctl"));
  if (answer) {
    context.out.text(fmt::format("daemon {}, converter {}, kernels {}",
                                 json_string(answer->body, "version").value_or("?"),
                                 json_string(answer->body, "converter").value_or("?"),
                                 json_string(answer->body, "kernel").value_or("?")));
  } else {
    context.out.message(answer.error().message);
  }
  return 0;
}

} // namespace

void add_version(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("version", "Show versions of modelctl and the daemon");
  command->callback([&context] { context.run = [&context] { return version(context); }; });
}

} // namespace modeld::daemon
