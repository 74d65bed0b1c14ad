// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/limit_rate.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

namespace modeld::daemon {
namespace {

struct Options {
  std::string ref;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::string limit_rate;
  bool detach = false;
};

Result<boost::json::object> body_of(const Options& options) {
  boost::json::object body{{"ref", options.ref}};
  const auto add = [&body](const char* name, const std::vector<std::string>& patterns) {
    if (!patterns.empty()) body[name] = boost::json::array(patterns.begin(), patterns.end());
  };
  add("include", options.include);
  add("exclude", options.exclude);
  MODELD_TRY(put_limit_rate(body, options.limit_rate));
  return body;
}

Result<int> pull(CommandContext& context, const Options& options) {
  MODELD_TRY(check_ref(options.ref));
  MODELD_ASSIGN(const auto body, body_of(options));
  MODELD_ASSIGN(const auto token, caller_token());
  Client client(context.socket, token);
  MODELD_ASSIGN(auto answer, client.post("/v1/pulls", body));
  MODELD_ASSIGN(const auto result,
                finish(context, client, std::move(answer), options.detach ? Wait::no : Wait::yes));
  return show_result(context, result, "snapshot");
}

} // namespace

void add_pull(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("pull", "Fetch a repository at a revision, and prove it");
  command->add_option("ref", options->ref, "org/name[@revision]")->required();
  command
      ->add_option("--include", options->include,
                   "Take only files whose path matches, such as '*.json' or 'folder/*'; more than "
                   "one may be given")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command->add_option("--exclude", options->exclude, "Leave out files whose path matches")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  add_limit_rate(*command, options->limit_rate);
  command->add_flag("--detach", options->detach, "Print the job's id instead of waiting for it");
  command->callback([&context, options] {
    context.run = [&context, options] { return pull(context, *options); };
  });
}

} // namespace modeld::daemon
