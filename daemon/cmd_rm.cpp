// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/request.hpp"
#include "schema/json.hpp"
#include "schema/model_ref.hpp"
#include "schema/recipe.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

// The built files of a snapshot whose recipe has this target, by key.
Result<std::vector<std::string>> find_keys(const boost::json::object& details,
                                           const ModelRef& ref) {
  MODELD_ASSIGN(const Recipe wanted, Recipe::parse_target(ref.selector));
  MODELD_ASSIGN(const auto* variants, json_array(details, "variants"));
  std::vector<std::string> keys;
  for (const auto& value : *variants) {
    if (!value.is_object()) continue;
    MODELD_ASSIGN(const auto variant, api::Variant::from_json(value.get_object()));
    if (variant.recipe.substr(0, variant.recipe.find(';')) == wanted.target) {
      keys.push_back(variant.key);
    }
  }
  if (keys.empty()) {
    return fail(Errc::not_found, fmt::format("looking for '{}': it is not built", ref.str()),
                "modelctl show lists what is");
  }
  return keys;
}

Result<boost::json::array> remove_variants(Client& client, const ModelRef& ref) {
  const ModelRef whole{ref.repo, ref.revision, {}};
  MODELD_ASSIGN(const auto details, client.get("/v1/snapshots/" + url_part(whole.str())));
  MODELD_ASSIGN(const auto keys, find_keys(details.body, ref));
  boost::json::array removed;
  for (const std::string& key : keys) {
    MODELD_ASSIGN(const auto answer, client.remove("/v1/variants/" + key));
    MODELD_ASSIGN(const auto* names, json_array(answer.body, "removed"));
    removed.insert(removed.end(), names->begin(), names->end());
  }
  return removed;
}

Result<boost::json::array> remove_snapshot(Client& client, const std::string& ref) {
  MODELD_ASSIGN(const auto answer, client.remove("/v1/snapshots/" + url_part(ref)));
  MODELD_ASSIGN(const auto* names, json_array(answer.body, "removed"));
  return *names;
}

Result<int> remove(CommandContext& context, const std::string& text) {
  MODELD_ASSIGN(const auto ref, ModelRef::parse(text));
  Client client(context.socket, {});
  MODELD_ASSIGN(auto removed, ref.selector.empty() ? remove_snapshot(client, text)
                                                   : remove_variants(client, ref));
  if (context.out.json()) {
    context.out.result(boost::json::object{{"removed", std::move(removed)}});
    return 0;
  }
  for (const auto& name : removed) {
    if (name.is_string()) context.out.text(std::string_view(name.get_string()));
  }
  return 0;
}

} // namespace

void add_rm(CLI::App& app, CommandContext& context) {
  auto ref = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("rm", "Forget a snapshot and what was built from it, or one built file");
  command->add_option("ref", *ref, "org/name[@revision][:QUANTIZATION]")->required();
  command->callback(
      [&context, ref] { context.run = [&context, ref] { return remove(context, *ref); }; });
}

} // namespace modeld::daemon
