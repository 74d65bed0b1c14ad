// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/counted.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace modeld::daemon {
namespace {

void add_rows(const boost::json::object& body, std::string_view member, std::string_view name,
              std::vector<std::vector<std::string>>& rows) {
  const auto list = json_array(body, member);
  if (!list) return;
  for (const auto& value : **list) {
    if (!value.is_object()) continue;
    const auto& item = value.get_object();
    rows.push_back({human_bytes(json_uint(item, "size").value_or(0)),
                    json_string(item, "sha256").value_or("").substr(0, 16),
                    json_string(item, name).value_or("")});
  }
}

Result<int> show(CommandContext& context, const std::string& ref) {
  MODELD_TRY(check_ref(ref));
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.get("/v1/snapshots/" + url_part(ref)));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const auto snapshot,
                api::Snapshot::from_json(answer.body.at("snapshot").as_object()));
  std::string text = fmt::format("{}@{}\n", snapshot.repo, snapshot.commit);
  if (!snapshot.revisions.empty()) {
    text += fmt::format("known as   {}\n", fmt::join(snapshot.revisions, ", "));
  }
  text += fmt::format("folder     {}\nadded      {}\nsize       {} in {}\n\n", snapshot.path,
                      human_time(snapshot.added), human_bytes(snapshot.bytes),
                      counted(snapshot.files, "file"));
  if (snapshot.absent > 0) {
    text.insert(text.size() - 1,
                fmt::format("not here   {} in {} files; modelctl pull fetches them\n",
                            human_bytes(snapshot.absent_bytes), snapshot.absent));
  }
  std::vector<std::vector<std::string>> rows{{"SIZE", "SHA-256", "FILE"}};
  add_rows(answer.body, "files", "path", rows);
  add_rows(answer.body, "variants", "path", rows);
  context.out.text(text + table(rows));
  return 0;
}

} // namespace

void add_show(CLI::App& app, CommandContext& context) {
  auto ref = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("show", "Show a snapshot, its files and what was built");
  command->add_option("ref", *ref, "org/name[@revision]")->required();
  command->callback(
      [&context, ref] { context.run = [&context, ref] { return show(context, *ref); }; });
}

} // namespace modeld::daemon
