// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/counted.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "daemon/size_text.hpp"
#include "daemon/watch.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  std::string rate;
  bool changed_only = false;
};

std::string report(const boost::json::object& result, const boost::json::array& damaged) {
  std::string out;
  for (const auto& value : damaged) {
    if (!value.is_object()) continue;
    const auto& blob = value.get_object();
    out += fmt::format("{}: {}\n", json_string(blob, "blob").value_or(""),
                       json_string(blob, "cause").value_or(""));
    for (const std::string_view list : {"snapshots", "users", "shown"}) {
      const auto names = json_array(blob, list);
      for (const auto& name : names ? **names : boost::json::array{}) {
        if (name.is_string()) {
          out += fmt::format("  {} {}\n",
                             list == "users"   ? "used by"
                             : list == "shown" ? "taken from"
                                               : "part of",
                             std::string_view(name.get_string()));
        }
      }
    }
  }
  return out + fmt::format("{} read, {}, {} damaged",
                           counted(json_uint(result, "blobs").value_or(0), "blob"),
                           human_bytes(json_uint(result, "bytes").value_or(0)), damaged.size());
}

Result<int> scrub(CommandContext& context, const Options& options) {
  boost::json::object body{{"changed_only", options.changed_only}};
  if (!options.rate.empty()) {
    MODELD_ASSIGN(body["bytes_per_second"], parse_bytes(options.rate, "--rate"));
  }
  Client client(context.socket, {});
  MODELD_ASSIGN(auto answer, client.post("/v1/scrub", body));
  MODELD_ASSIGN(const auto result, finish(context, client, std::move(answer), Wait::yes));
  MODELD_ASSIGN(const auto* damaged, json_array(result, "damaged"));
  if (context.out.json()) {
    context.out.result(result);
  } else {
    context.out.text(report(result, *damaged));
  }
  return damaged->empty() ? 0 : info(Errc::corrupt).exit_status;
}

} // namespace

void add_scrub(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("scrub", "Read every blob again, and put damaged ones into quarantine");
  command->add_option("--rate", options->rate, "Bytes per second, as in 100MiB");
  command->add_flag("--changed-only", options->changed_only,
                    "Only files whose size or time is not as recorded");
  command->callback([&context, options] {
    context.run = [&context, options] { return scrub(context, *options); };
  });
}

} // namespace modeld::daemon
