// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/gguf_input.hpp"
#include "quantize/recipe/imatrix.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>

namespace modeld::daemon {
namespace {

namespace json = boost::json;
using quantize::ImatrixFile;
using quantize::ImatrixStatistics;

json::object to_json(const ImatrixFile& file, const std::vector<ImatrixStatistics>& all) {
  json::array entries;
  for (const ImatrixStatistics& s : all) {
    entries.push_back(json::object{{"name", s.name},
                                   {"columns", s.columns},
                                   {"experts", s.experts},
                                   {"unused_experts", s.unused_experts},
                                   {"tokens", s.tokens},
                                   {"sum", s.sum},
                                   {"mean", s.mean},
                                   {"deviation", s.deviation},
                                   {"min", s.min},
                                   {"max", s.max},
                                   {"active", s.active},
                                   {"entropy", s.entropy}});
  }
  json::array datasets(file.datasets.begin(), file.datasets.end());
  return {{"form", file.legacy ? "dat" : "gguf"},
          {"datasets", std::move(datasets)},
          {"chunks", file.chunks},
          {"chunk_size", file.chunk_size},
          {"entries", std::move(entries)}};
}

void show_table(Output& out, const ImatrixFile& file, const std::vector<ImatrixStatistics>& all) {
  out.result(fmt::format("{} entries, {} chunks of {} tokens, {} form; data: {}", all.size(),
                         file.chunks, file.chunk_size, file.legacy ? ".dat" : "GGUF",
                         file.datasets.empty() ? "unknown" : file.datasets.front()));
  out.result(fmt::format("{:<36} {:>7} {:>7} {:>9} {:>11} {:>11} {:>11} {:>7} {:>8}", "tensor",
                         "columns", "experts", "tokens", "sum", "mean", "max", "active",
                         "entropy"));
  for (const ImatrixStatistics& s : all) {
    const std::string experts = s.unused_experts == 0
                                    ? fmt::format("{}", s.experts)
                                    : fmt::format("{}-{}", s.experts, s.unused_experts);
    out.result(fmt::format(
        "{:<36} {:>7} {:>7} {:>9} {:>11.5g} {:>11.5g} {:>11.5g} {:>6.1f}% {:>8.3f}", s.name,
        s.columns, experts, s.tokens, s.sum, s.mean, s.max, 100 * s.active, s.entropy));
  }
}

Result<int> show(CommandContext& context, const std::string& path) {
  MODELD_ASSIGN(const auto files, open_one_file(path));
  MODELD_ASSIGN(const auto bytes, files->bytes(files->entries().front().path));
  MODELD_ASSIGN(const ImatrixFile file, quantize::read_imatrix(bytes, path));
  const auto all = quantize::imatrix_statistics(file);
  if (context.out.json()) {
    context.out.result(to_json(file, all));
  } else {
    show_table(context.out, file, all);
  }
  // What the quantizer would say: unused experts, and values that it would refuse.
  MODELD_ASSIGN(const auto importance, quantize::make_importance(file, path, {}));
  for (const std::string& warning : importance.warnings) {
    context.out.message("warning: " + warning);
  }
  return 0;
}

} // namespace

void add_imatrix(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("imatrix", "Importance matrices");
  command->require_subcommand(1);
  auto path = std::make_shared<std::string>();
  CLI::App* shown = command->add_subcommand("show", "Statistics of an importance matrix");
  shown->add_option("file", *path, "GGUF or .dat")->required();
  shown->callback(
      [&context, path] { context.run = [&context, path] { return show(context, *path); }; });
}

} // namespace modeld::daemon
