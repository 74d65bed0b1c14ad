// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/descriptor.hpp"
#include "daemon/worker_process.hpp"
#include "schema/json.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace modeld::daemon {
namespace {

namespace json = boost::json;

struct Options {
  std::string path;
  std::string key;
  bool full = false;
};

Result<int> inspect_file(CommandContext& context, const Options& options) {
  std::error_code ec;
  if (!std::filesystem::exists(options.path, ec))
    return fail(Errc::not_found,
                fmt::format("inspecting '{}': there is no such file", options.path));
  if (!std::filesystem::is_regular_file(options.path, ec))
    return fail(Errc::invalid_argument,
                fmt::format("inspecting '{}': it is no regular file", options.path),
                "modelctl check reads folders");
  const std::string name = std::filesystem::path(options.path).filename().string();
  WorkerRequest request;
  request.task = WorkerRequest::Task::inspect;
  request.name = name;
  request.files = {{name, std::filesystem::file_size(options.path, ec)}};
  request.options = {{"path", options.path},
                     {"key", options.key},
                     {"full", options.full},
                     {"json", context.out.json()}};
  Progress progress;
  MODELD_ASSIGN(
      const auto text,
      read_from_worker(
          request, [&](std::size_t) { return open_for_reading(options.path); }, progress));
  MODELD_ASSIGN(const auto value, parse_json(text, "a worker's answer"));
  if (!value.is_object()) return fail(Errc::internal, "parsing a worker's answer: no object");
  const json::object& answer = value.get_object();
  MODELD_ASSIGN(const auto* messages, json_array(answer, "messages"));
  for (const auto& message : *messages)
    if (message.is_string()) context.out.message(std::string_view(message.get_string()));
  MODELD_ASSIGN(const auto shown, json_string(answer, "text"));
  context.out.result(shown);
  const auto* accepted = answer.if_contains("accepted");
  const bool good = accepted != nullptr && accepted->is_bool() && accepted->get_bool();
  return good ? 0 : info(Errc::malformed).exit_status;
}

} // namespace

void add_inspect(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show metadata and tensors of a GGUF or safetensors file");
  command->add_option("file", options->path, "The file")->required();
  command->add_option("--key", options->key, "Only this metadata value, whole");
  command->add_flag("--full", options->full, "Whole arrays and texts");
  command->callback([&context, options] {
    context.run = [&context, options] { return inspect_file(context, *options); };
  });
}

} // namespace modeld::daemon
