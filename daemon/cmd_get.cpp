// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/limit_rate.hpp"
#include "daemon/recipe_options.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"

#include <CLI/CLI.hpp>

namespace modeld::daemon {
namespace {

struct Options {
  std::string ref;
  RecipeOptions recipe;
  std::string limit_rate;
  bool detach = false;
};

Result<int> get(CommandContext& context, const Options& options) {
  MODELD_TRY(check_ref(options.ref));
  MODELD_ASSIGN(const auto token, caller_token());
  Client client(context.socket, token);
  boost::json::object body{{"ref", options.ref}};
  if (auto recipe = to_json(options.recipe); !recipe.empty()) body["recipe"] = std::move(recipe);
  MODELD_TRY(put_limit_rate(body, options.limit_rate));
  MODELD_ASSIGN(auto answer, client.post("/v1/variants", body));
  MODELD_ASSIGN(const auto result,
                finish(context, client, std::move(answer), options.detach ? Wait::no : Wait::yes));
  return show_result(context, result, "variant");
}

} // namespace

void add_get(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "get", "Print the path of a model file; pull, convert and quantize what is missing");
  command->add_option("ref", options->ref, "org/name[@revision][:QUANTIZATION or file]")
      ->required();
  add_recipe_options(*command, options->recipe);
  add_limit_rate(*command, options->limit_rate);
  command->add_flag("--detach", options->detach, "Print the job's id instead of waiting for it");
  command->callback([&context, options] {
    context.run = [&context, options] { return get(context, *options); };
  });
}

} // namespace modeld::daemon
