// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "schema/model_ref.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  std::string ref;
  std::string name;
};

// "org--name": a repository's name has no "--" of its own.
std::string default_name(const RepoId& repo) {
  if (repo.org().empty()) return std::string(repo.name());
  return fmt::format("{}--{}", repo.org(), repo.name());
}

Result<int> pin(CommandContext& context, const Options& options) {
  MODELD_ASSIGN(const auto ref, ModelRef::parse(options.ref));
  const std::string name = options.name.empty() ? default_name(ref.repo) : options.name;
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer,
                client.put("/v1/pins/" + url_part(name), {{"ref", options.ref}}));
  if (context.out.json()) {
    context.out.result(answer.body);
  } else {
    context.out.result(name);
  }
  return 0;
}

Result<int> unpin(CommandContext& context, const std::string& text) {
  std::string name = text;
  if (text.find('/') != std::string::npos) {
    MODELD_ASSIGN(const auto ref, ModelRef::parse(text));
    name = default_name(ref.repo);
  }
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.remove("/v1/pins/" + url_part(name)));
  if (context.out.json()) context.out.result(answer.body);
  return 0;
}

} // namespace

void add_pin(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("pin", "Keep a snapshot from collection");
  command->add_option("ref", options->ref, "org/name[@revision][:QUANTIZATION]")->required();
  command->add_option("--name", options->name, "Name of the pin; org--name without");
  command->callback([&context, options] {
    context.run = [&context, options] { return pin(context, *options); };
  });
}

void add_unpin(CLI::App& app, CommandContext& context) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("unpin", "Give up a pin");
  command->add_option("name", *name, "Name of the pin, or org/name")->required();
  command->callback(
      [&context, name] { context.run = [&context, name] { return unpin(context, *name); }; });
}

} // namespace modeld::daemon
