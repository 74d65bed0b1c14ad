// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>

namespace modeld::daemon {
namespace {

struct Options {
  std::string ref;
  std::vector<std::string> command;
};

std::string filled(std::string text, std::string_view path) {
  for (auto at = text.find("{}"); at != std::string::npos; at = text.find("{}", at)) {
    text.replace(at, 2, path);
    at += path.size();
  }
  return text;
}

// Becomes the command. Only comes back where that fails.
Error become(const std::vector<std::string>& command, std::string_view path) {
  std::vector<std::string> words;
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    words.push_back(filled(word, path));
  }
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return from_errno(errno, fmt::format("running '{}'", words.front()));
}

// The lease is on this process, which then is the command: it holds exactly as long as that runs.
Result<int> exec(CommandContext& context, const Options& options) {
  MODELD_TRY(check_ref(options.ref));
  MODELD_ASSIGN(const auto token, caller_token());
  Client client(context.socket, token);
  MODELD_ASSIGN(auto answer, client.post("/v1/variants", {{"ref", options.ref}}));
  MODELD_ASSIGN(const auto result, finish(context, client, std::move(answer), Wait::yes));
  const auto* shown = result.if_contains("variant");
  if (shown == nullptr || !shown->is_object()) {
    return fail(Errc::internal, "reading the daemon's answer: it has no 'variant'");
  }
  MODELD_ASSIGN(const auto variant, api::Variant::from_json(shown->get_object()));
  MODELD_TRY(client.post("/v1/leases", {{"blob", variant.sha256},
                                        {"holder", "process"},
                                        {"pid", ::getpid()},
                                        {"note", options.command.front()}}));
  context.out.flush();
  return fail(become(options.command, variant.path));
}

} // namespace

void add_exec(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "exec", "Run a command with the path of a model file in the place of {}; the file stays "
              "while it runs");
  command->add_option("ref", options->ref, "org/name[@revision][:QUANTIZATION or file]")
      ->required();
  command->add_option("command", options->command, "After --: the command and its arguments")
      ->required();
  command->callback([&context, options] {
    context.run = [&context, options] { return exec(context, *options); };
  });
}

} // namespace modeld::daemon
