// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

namespace modeld::daemon {
namespace {

struct Options {
  bool pins = false;
};

template <class T>
Result<std::vector<T>> members(const boost::json::object& body, std::string_view name) {
  MODELD_ASSIGN(const auto* list, json_array(body, name));
  std::vector<T> out;
  for (const auto& value : *list) {
    if (!value.is_object()) continue;
    MODELD_ASSIGN(auto item, T::from_json(value.get_object()));
    out.push_back(std::move(item));
  }
  return out;
}

// What to write behind the colon of a ref to get it, with --mmproj for a projector.
std::string selector_of(const api::Variant& variant) {
  for (const std::string_view kind : {"gguf;tag=", "file;path="}) {
    if (variant.recipe.starts_with(kind)) return variant.recipe.substr(kind.size());
  }
  constexpr std::string_view k_projector = "mmproj;of=";
  if (variant.recipe.starts_with(k_projector)) {
    return variant.recipe.substr(k_projector.size()) + " (projector)";
  }
  const bool projector = variant.recipe.ends_with(";mmproj=1");
  return variant.recipe.substr(0, variant.recipe.find(';')) + (projector ? " (projector)" : "");
}

std::string place_of(const std::string& repo, const std::string& commit) {
  return repo + "@" + commit.substr(0, 12);
}

// A line for each snapshot, and one for each file that was built from it or is kept without it.
std::string listing(const std::vector<api::Snapshot>& snapshots,
                    const std::vector<api::Variant>& variants) {
  using Row = std::vector<std::string>;
  std::map<std::string, std::vector<Row>> places;
  for (const api::Snapshot& snapshot : snapshots) {
    const std::string place = place_of(snapshot.repo, snapshot.commit);
    places[place].push_back(
        {place,
         snapshot.damaged ? "damaged" : fmt::format("{}", fmt::join(snapshot.revisions, ",")),
         human_bytes(snapshot.bytes),
         snapshot.absent == 0
             ? fmt::format("{}", snapshot.files)
             : fmt::format("{} of {}", snapshot.files, snapshot.files + snapshot.absent),
         human_time(snapshot.added)});
  }
  for (const api::Variant& variant : variants) {
    const std::string place = place_of(variant.repo, variant.commit);
    auto& rows = places[place];
    if (rows.empty()) rows.push_back({place, "", "-", "-", "-"});
    rows.push_back({"  :" + selector_of(variant), "", human_bytes(variant.size), "1",
                    human_time(variant.added)});
  }
  std::vector<Row> rows{{"MODEL", "REVISION", "SIZE", "FILES", "ADDED"}};
  for (const auto& [place, lines] : places) {
    rows.insert(rows.end(), lines.begin(), lines.end());
  }
  return table(rows);
}

Result<int> list_pins(CommandContext& context, Client& client) {
  MODELD_ASSIGN(const auto answer, client.get("/v1/pins"));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const auto* pins, json_array(answer.body, "pins"));
  std::vector<std::vector<std::string>> rows{{"PIN", "MODEL"}};
  for (const auto& value : *pins) {
    if (!value.is_object()) continue;
    const auto& pin = value.get_object();
    rows.push_back({json_string(pin, "name").value_or(""),
                    json_string(pin, "repo").value_or("") + "@" +
                        json_string(pin, "commit").value_or("").substr(0, 12)});
  }
  context.out.text(table(rows));
  return 0;
}

Result<int> list(CommandContext& context, const Options& options) {
  Client client(context.socket, {});
  if (options.pins) return list_pins(context, client);
  MODELD_ASSIGN(const auto snapshots, client.get("/v1/snapshots"));
  MODELD_ASSIGN(const auto variants, client.get("/v1/variants"));
  if (context.out.json()) {
    context.out.result(boost::json::object{{"snapshots", snapshots.body.at("snapshots")},
                                           {"variants", variants.body.at("variants")}});
    return 0;
  }
  MODELD_ASSIGN(const auto here, members<api::Snapshot>(snapshots.body, "snapshots"));
  MODELD_ASSIGN(const auto built, members<api::Variant>(variants.body, "variants"));
  if (here.empty() && built.empty()) {
    context.out.message("nothing is here yet; modelctl pull org/name fetches a model");
    return 0;
  }
  context.out.text(listing(here, built));
  return 0;
}

} // namespace

void add_ls(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ls", "List what is here");
  command->add_flag("--pins", options->pins, "List pins instead");
  command->callback([&context, options] {
    context.run = [&context, options] { return list(context, *options); };
  });
}

} // namespace modeld::daemon
