// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

Result<int> health(CommandContext& context) {
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.get("/v1/health"));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const auto root, json_string(answer.body, "root"));
  MODELD_ASSIGN(const auto up, json_uint(answer.body, "uptime_seconds"));
  context.out.text(fmt::format("ok, serving {} for {}", root, human_duration(up)));
  return 0;
}

using Rows = std::vector<std::vector<std::string>>;

std::uint64_t number(const boost::json::object& from, std::string_view name) {
  return json_uint(from, name).value_or(0);
}

// The lines of what is on the disk add up to the one below them.
Rows disk_rows(const boost::json::object& body) {
  const auto* found = body.if_contains("disk");
  const boost::json::object none;
  const auto& disk = found != nullptr && found->is_object() ? found->get_object() : none;
  Rows rows{{"snapshots", fmt::format("{}", number(body, "snapshots")),
             human_bytes(number(disk, "snapshots"))},
            {"variants", fmt::format("{}", number(body, "variants")),
             human_bytes(number(disk, "variants"))}};
  const auto add = [&](std::string_view text, std::string_view member, std::string_view hint) {
    const auto bytes = number(disk, member);
    if (bytes > 0) rows.push_back({std::string(text), std::string(hint), human_bytes(bytes)});
  };
  add("unnamed", "unnamed", "modelctl gc frees it");
  add("unfinished", "unfinished", "downloads to go on with");
  add("quarantine", "quarantine", "modelctl gc frees it");
  add("reserve file", "reserve_file", "");
  add("records", "records", "");
  rows.push_back({"on the disk", "", human_bytes(number(disk, "total"))});
  return rows;
}

std::string quota_text(std::uint64_t quota) {
  return quota == 0 ? std::string("none") : human_bytes(quota);
}

Rows user_rows(const boost::json::object& body) {
  Rows rows{{"USER", "USED", "RESERVED", "QUOTA"}};
  const auto users = json_array(body, "users");
  for (const auto& value : users ? **users : boost::json::array{}) {
    if (!value.is_object()) continue;
    const auto& user = value.get_object();
    const std::string name = json_string(user, "name").value_or("");
    rows.push_back({name.empty() ? fmt::format("{}", number(user, "uid")) : name,
                    human_bytes(number(user, "used")), human_bytes(number(user, "reserved")),
                    quota_text(number(user, "quota"))});
  }
  return rows;
}

Rows shared_rows(const boost::json::object& body) {
  Rows rows;
  const auto roots = json_array(body, "shared_roots");
  for (const auto& value : roots ? **roots : boost::json::array{}) {
    if (!value.is_object()) continue;
    const auto& root = value.get_object();
    const auto* there = root.if_contains("there");
    const bool is_there = there != nullptr && there->is_bool() && there->get_bool();
    rows.push_back({"shared store", json_string(root, "root").value_or(""),
                    is_there ? fmt::format("{} snapshots", number(root, "snapshots"))
                             : std::string("not there: mount its file system")});
  }
  return rows;
}

Result<int> usage(CommandContext& context) {
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.get("/v1/usage"));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  const auto& body = answer.body;
  Rows rows = disk_rows(body);
  if (const auto quota = number(body, "quota"); quota > 0) {
    rows.push_back({"quota", fmt::format("{} stored", human_bytes(number(body, "stored"))),
                    human_bytes(quota)});
  }
  rows.push_back({"reserved", "", human_bytes(number(body, "reserved"))});
  rows.push_back({"free", "", human_bytes(number(body, "free"))});
  rows.push_back({"capacity", "", human_bytes(number(body, "capacity"))});
  for (auto& row : shared_rows(body)) {
    rows.push_back(std::move(row));
  }
  context.out.text(table(rows));
  if (const Rows users = user_rows(body); users.size() > 1) {
    context.out.text("");
    context.out.text(table(users));
  }
  return 0;
}

} // namespace

void add_health(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("health", "Whether the daemon answers");
  command->callback([&context] { context.run = [&context] { return health(context); }; });
}

void add_usage(CLI::App& app, CommandContext& context) {
  CLI::App* command =
      app.add_subcommand("usage", "Show space, by what it is used for and by whom, and quotas");
  command->callback([&context] { context.run = [&context] { return usage(context); }; });
}

} // namespace modeld::daemon
