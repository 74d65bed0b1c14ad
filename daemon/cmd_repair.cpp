// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "daemon/watch.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

std::string text_of(const boost::json::object& from, std::string_view name) {
  return json_string(from, name).value_or("");
}

std::string what_of(const boost::json::object& entry) {
  const auto names = json_array(entry, "snapshots");
  if (names && !(*names)->empty() && (*names)->front().is_string()) {
    return std::string((*names)->front().get_string());
  }
  return "blob " + text_of(entry, "blob");
}

std::string report(const boost::json::array& repaired, const boost::json::array& failed) {
  std::string out;
  for (const auto& value : repaired) {
    if (!value.is_object()) continue;
    const auto& entry = value.get_object();
    const std::string how = text_of(entry, "how");
    const std::string fetched = human_bytes(json_uint(entry, "fetched").value_or(0));
    out += fmt::format("repaired {}: {}\n", what_of(entry),
                       how == "built"    ? std::string("built again, the same bytes")
                       : how == "ranges" ? fmt::format("{} fetched, the rest was good", fetched)
                                         : fmt::format("all of it fetched, {}", fetched));
  }
  for (const auto& value : failed) {
    const auto* error = value.is_object() ? value.get_object().if_contains("error") : nullptr;
    if (error == nullptr || !error->is_object()) continue;
    out += fmt::format("still damaged {}: {}\n", what_of(value.get_object()),
                       text_of(error->get_object(), "message"));
  }
  return out + fmt::format("{} repaired, {} still damaged", repaired.size(), failed.size());
}

Result<int> repair(CommandContext& context, const std::string& ref) {
  boost::json::object body;
  if (!ref.empty()) {
    MODELD_TRY(check_ref(ref));
    body["ref"] = ref;
  }
  MODELD_ASSIGN(const auto token, caller_token());
  Client client(context.socket, token);
  MODELD_ASSIGN(auto answer, client.post("/v1/repair", body));
  MODELD_ASSIGN(const auto result, finish(context, client, std::move(answer), Wait::yes));
  MODELD_ASSIGN(const auto* repaired, json_array(result, "repaired"));
  MODELD_ASSIGN(const auto* failed, json_array(result, "failed"));
  if (context.out.json()) {
    context.out.result(result);
  } else {
    context.out.text(report(*repaired, *failed));
  }
  return failed->empty() ? 0 : info(Errc::corrupt).exit_status;
}

} // namespace

void add_repair(CLI::App& app, CommandContext& context) {
  auto ref = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "repair", "Fetch again the bytes that are wrong, or build a damaged file again");
  command->add_option("ref", *ref, "org/name[@revision]; without, everything that is damaged");
  command->callback(
      [&context, ref] { context.run = [&context, ref] { return repair(context, *ref); }; });
}

} // namespace modeld::daemon
