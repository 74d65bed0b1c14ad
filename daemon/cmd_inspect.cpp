// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/inspection.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/terminal_text.hpp"
#include "store/mapped_file.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

namespace modeld::daemon {
namespace {

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
  MODELD_ASSIGN(const auto mapped, store::MappedFile::open(options.path));
  validate::Report report(options.path, validate::Profile::compat);
  MODELD_ASSIGN(const Inspection file, inspect(mapped.bytes(), options.path, report));
  for (const validate::Finding& finding : report.findings()) {
    if (finding.severity != validate::Severity::error) continue;
    context.out.message(fmt::format("{} ({})", finding.message, finding.rule));
  }
  if (!options.key.empty()) {
    const Inspection::Item* item = file.find(options.key);
    if (item == nullptr) {
      return fail(Errc::not_found,
                  fmt::format("inspecting '{}': there is no key '{}'", options.path, options.key));
    }
    if (context.out.json())
      context.out.result(safe_json(boost::json::object{
          {"key", options.key}, {"type", item->type()}, {"value", inspection_json(*item)}}));
    else
      context.out.result(inspection_value(*item));
  } else if (context.out.json()) {
    context.out.result(safe_json(inspection_json(file)));
  } else {
    context.out.result(inspection_text(file, options.full));
  }
  return report.accepted() ? 0 : info(Errc::malformed).exit_status;
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
