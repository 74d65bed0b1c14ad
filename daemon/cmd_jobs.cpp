// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/human_text.hpp"
#include "daemon/request.hpp"
#include "daemon/size_text.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

struct Options {
  bool all = false;
};

std::string state_of(const api::Job& job) {
  if (job.state != "running") return job.state;
  return job.phase.empty() ? job.state : job.phase;
}

std::string remark(const api::Job& job) {
  if (job.error) return job.error->message;
  if (!job.notice.empty()) return job.notice;
  if (job.total == 0 || job.finished()) return {};
  std::string text = fmt::format("{} of {}", human_bytes(job.done), human_bytes(job.total));
  if (job.limit_rate != 0) text += fmt::format(", at most {}/s", human_bytes(job.limit_rate));
  return text;
}

Result<int> jobs(CommandContext& context, const Options& options) {
  Client client(context.socket, {});
  MODELD_ASSIGN(const auto answer, client.get("/v1/jobs"));
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const auto* list, json_array(answer.body, "jobs"));
  std::vector<std::vector<std::string>> rows{{"JOB", "KIND", "STATE", "SINCE", "FOR", ""}};
  for (const auto& value : *list) {
    if (!value.is_object()) continue;
    MODELD_ASSIGN(const auto job, api::Job::from_json(value.get_object()));
    if (job.finished() && !options.all) continue;
    rows.push_back(
        {job.id, job.kind, state_of(job), human_time(job.created), job.ref, remark(job)});
  }
  if (rows.size() == 1) {
    context.out.message(options.all ? "no job yet" : "nothing runs; --all shows finished jobs");
    return 0;
  }
  context.out.text(table(rows));
  return 0;
}

struct LimitOptions {
  std::string rate;
  std::string job;
};

Result<int> limit(CommandContext& context, const LimitOptions& options) {
  Client client(context.socket, {});
  const std::string path = options.job.empty() ? std::string("/v1/bandwidth")
                                               : "/v1/jobs/" + url_part(options.job) + "/bandwidth";
  Client::Answer answer;
  if (options.rate.empty()) {
    MODELD_ASSIGN(answer, client.get(path));
  } else {
    MODELD_ASSIGN(const std::uint64_t rate, parse_rate(options.rate, "the rate"));
    MODELD_ASSIGN(answer, client.put(path, {{"limit_rate", rate}}));
  }
  if (context.out.json()) {
    context.out.result(answer.body);
    return 0;
  }
  MODELD_ASSIGN(const std::uint64_t now, json_uint(answer.body, "limit_rate"));
  context.out.result(now == 0 ? std::string("no limit") : human_bytes(now) + "/s");
  return 0;
}

void add_limit(CLI::App& jobs, CommandContext& context) {
  auto options = std::make_shared<LimitOptions>();
  CLI::App* command =
      jobs.add_subcommand("limit", "Show or change how fast downloads may be, also while they run");
  command
      ->add_option("rate", options->rate,
                   "Bytes per second, as in 20MiB, or none; without, the limit is printed")
      ->type_name("RATE");
  command->add_option("--job", options->job,
                      "Of this pull alone; without, of all downloads together, until the daemon "
                      "ends: hub.bandwidth is where it starts");
  command->callback([&context, options] {
    context.run = [&context, options] { return limit(context, *options); };
  });
}

} // namespace

void add_jobs(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("jobs", "List jobs that wait or run");
  command->add_flag("-a,--all", options->all, "Finished ones too");
  add_limit(*command, context);
  command->callback([&context, options, command] {
    if (!command->get_subcommands().empty()) return;
    context.run = [&context, options] { return jobs(context, *options); };
  });
}

} // namespace modeld::daemon
