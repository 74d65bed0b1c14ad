// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/program_place.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"
#include "schema/json.hpp"
#include "schema/model_ref.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  std::string what; ///< a ref, or an id
  std::string to;
  bool all = false;
};

std::string text_of(const boost::json::object& from, std::string_view name) {
  return json_string(from, name).value_or("");
}

bool is_flag(const boost::json::object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

// Which commit a ref means is the daemon's to say; a name alone means all of them.
Result<std::string> commit_of(Client& client, const ModelRef& ref) {
  if (ref.revision.empty()) return std::string();
  if (is_commit(ref.revision)) return ref.revision;
  MODELD_ASSIGN(
      const auto answer,
      client.get("/v1/snapshots/" + url_part(ModelRef{ref.repo, ref.revision, {}}.str())));
  MODELD_ASSIGN(const auto* snapshot, object_member(answer.body, "snapshot"));
  return json_string(*snapshot, "commit");
}

// Ids of what is meant.
Result<std::vector<std::string>> find_views(Client& client, const Options& options) {
  MODELD_ASSIGN(const auto answer, client.get("/v1/views"));
  MODELD_ASSIGN(const auto* views, json_array(answer.body, "views"));
  MODELD_ASSIGN(const auto* standing, json_array(answer.body, "standing"));
  ProgramPlace place;
  if (!options.to.empty()) {
    MODELD_ASSIGN(place, parse_place(options.to));
  }
  const auto in_place = [&](const boost::json::object& view) {
    return options.to.empty() ||
           (text_of(view, "target") == place.program && text_of(view, "root") == place.root);
  };
  std::vector<std::string> ids;
  if (options.all) { // the wish first, or it would come back
    for (const auto* list : {standing, views}) {
      for (const auto& value : *list) {
        if (!value.is_object() || !in_place(value.get_object())) continue;
        if (!is_flag(value.get_object(), "standing"))
          ids.push_back(text_of(value.get_object(), "id"));
      }
    }
    return ids;
  }
  const bool is_ref = options.what.find('/') != std::string::npos;
  ModelRef ref;
  std::string commit;
  if (is_ref) {
    MODELD_ASSIGN(ref, ModelRef::parse(options.what));
    MODELD_ASSIGN(commit, commit_of(client, ref));
  }
  for (const auto& value : *views) {
    if (!value.is_object()) continue;
    const auto& view = value.get_object();
    const bool meant = is_ref ? text_of(view, "repo") == ref.repo.text &&
                                    (commit.empty() || text_of(view, "commit") == commit)
                              : text_of(view, "id").starts_with(options.what);
    if (meant && in_place(view)) ids.push_back(text_of(view, "id"));
  }
  return ids;
}

Result<int> unlink(CommandContext& context, const Options& options) {
  if (options.all != options.what.empty()) {
    return fail(Errc::invalid_argument, "unlinking: one of a ref, an id and --all is needed",
                "modelctl link --list shows what is linked");
  }
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto ids, find_views(client, options));
  if (ids.empty() && !options.all) {
    return fail(Errc::not_found, fmt::format("unlinking '{}': it is not linked", options.what),
                "modelctl link --list shows what is linked");
  }
  boost::json::array removed;
  boost::json::array left;
  for (const std::string& id : ids) {
    auto answer = client.remove("/v1/views/" + url_part(id));
    if (!answer && answer.error().code == Errc::not_found) continue; // went with the one before
    if (!answer) return fail(std::move(answer).error());
    MODELD_ASSIGN(const auto result, finish(context, client, *std::move(answer), Wait::yes));
    MODELD_ASSIGN(const auto* gone, json_array(result, "removed"));
    removed.insert(removed.end(), gone->begin(), gone->end());
    MODELD_ASSIGN(const auto* kept, json_array(result, "left"));
    left.insert(left.end(), kept->begin(), kept->end());
  }
  for (const auto& path : left) {
    if (path.is_string()) {
      context.out.message(
          fmt::format("left, somebody changed it: {}", std::string_view(path.get_string())));
    }
  }
  if (context.out.json()) {
    context.out.result(boost::json::object{{"removed", removed}, {"left", left}});
    return 0;
  }
  for (const auto& name : removed) {
    if (name.is_string()) context.out.text(std::string_view(name.get_string()));
  }
  return 0;
}

} // namespace

void add_unlink(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("unlink", "Take a model out of another program's folder again");
  command->add_option("what", options->what, "org/name[@revision], or an id of link --list");
  command->add_option("--to", options->to, "Only there: as for link");
  command->add_flag("-a,--all", options->all, "Everything, and nothing new from now on");
  command->callback([&context, options] {
    context.run = [&context, options] { return unlink(context, *options); };
  });
}

} // namespace modeld::daemon
