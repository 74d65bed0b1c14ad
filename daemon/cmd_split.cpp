// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/gguf_input.hpp"
#include "daemon/write_models.hpp"
#include "quantize/gguf/gguf_split.hpp"
#include "quantize/gguf/gguf_writer.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <memory>
#include <system_error>

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// The options of llama-gguf-split, which also merges.
struct Options {
  std::string in;
  std::string out;
  std::uint64_t max_tensors = 0;
  std::string max_size;
  bool no_tensor_first = false;
  bool dry_run = false;
  bool merge = false;
  bool split = false;         ///< said aloud; there is nothing else to do
  bool delete_splits = false; ///< merge: the parts, once the whole is there
};

void show_paths(Output& out, const std::vector<fs::path>& paths) {
  if (!out.json()) {
    for (const fs::path& path : paths) {
      out.result(path.string());
    }
    return;
  }
  json::array files;
  for (const fs::path& path : paths) {
    files.emplace_back(path.string());
  }
  out.result(json::object{{"files", std::move(files)}});
}

Result<void> show_plan(Output& out, const std::vector<quantize::GgufModel>& parts,
                       const std::vector<fs::path>& paths) {
  json::array files;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    MODELD_ASSIGN(const std::uint64_t size, quantize::gguf_file_size(parts[i]));
    files.push_back(json::object{
        {"path", paths[i].string()}, {"tensors", parts[i].tensors.size()}, {"bytes", size}});
    if (!out.json()) {
      out.result(fmt::format("{}  {} tensors, {} bytes", paths[i].string(), parts[i].tensors.size(),
                             size));
    }
  }
  if (out.json()) out.result(json::object{{"files", std::move(files)}});
  return {};
}

Result<void> remove_parts(const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    std::error_code ec;
    fs::remove(path, ec);
    if (ec) return fail(from_errno(ec.value(), fmt::format("deleting '{}'", path.string())));
  }
  return {};
}

Result<int> merge(CommandContext& context, const Options& options) {
  std::error_code ec;
  if (fs::exists(fs::symlink_status(options.out, ec))) {
    return fail(Errc::conflict, fmt::format("merging into '{}': it exists already", options.out),
                "remove that file first, or give another name");
  }
  MODELD_ASSIGN(const GgufInput input, open_gguf_input(options.in));
  MODELD_ASSIGN(auto merged, quantize::merge_gguf(input.source));
  std::vector<quantize::GgufModel> models;
  models.push_back(std::move(merged));
  const std::vector<fs::path> paths{options.out};
  if (options.dry_run) {
    MODELD_TRY(show_plan(context.out, models, paths));
    return 0;
  }
  const ModelFiles files{paths, input.paths, *input.files, quantize::ExistingFile::refuse};
  MODELD_TRY(write_models(context.out, models, files, "merging", 1));
  show_paths(context.out, paths);
  if (options.delete_splits) MODELD_TRY(remove_parts(input.paths));
  return 0;
}

Result<int> split(CommandContext& context, const Options& options) {
  if (options.merge && options.split) {
    return fail(Errc::invalid_argument, "--merge and --split exclude each other");
  }
  if (options.merge) return merge(context, options);
  quantize::SplitLimits limits;
  limits.no_tensor_first = options.no_tensor_first;
  if (options.max_tensors != 0 && !options.max_size.empty()) {
    return fail(Errc::invalid_argument,
                "--split-max-tensors and --split-max-size exclude each other");
  }
  if (options.max_tensors != 0) limits.max_tensors = options.max_tensors;
  if (!options.max_size.empty()) {
    MODELD_ASSIGN(limits.max_bytes, quantize::parse_split_limit(options.max_size));
  }
  MODELD_ASSIGN(const GgufInput input, open_gguf_input(options.in));
  MODELD_ASSIGN(const auto parts, quantize::split_gguf(input.source.model, limits));
  std::vector<fs::path> paths;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    paths.emplace_back(quantize::part_path(options.out, i, parts.size()));
  }
  if (options.dry_run) {
    MODELD_TRY(show_plan(context.out, parts, paths));
    return 0;
  }
  MODELD_TRY(write_models(context.out, parts, {paths, input.paths, *input.files}, "splitting", 1));
  show_paths(context.out, paths);
  return 0;
}

} // namespace

void add_split(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("split", "Split a GGUF file into parts");
  command->add_option("in", o->in, "GGUF file")->required();
  command->add_option("out", o->out, "Start of the parts' names: OUT-00001-of-00003.gguf")
      ->required();
  command->add_option("--split-max-tensors", o->max_tensors, "Tensors in a part, 128 by default")
      ->check(CLI::PositiveNumber);
  command->add_option("--split-max-size", o->max_size, "Tensor data in a part: N(M|G)");
  command->add_flag("--no-tensor-first-split", o->no_tensor_first, "Metadata alone in the first");
  command->add_flag("--dry-run", o->dry_run, "Show the parts, write nothing");
  command->add_flag("--delete-splits", o->delete_splits, "With --merge: delete the parts then");
  command->add_flag("--merge", o->merge, "Merge instead: IN is the first part, OUT the file");
  command->add_flag("--split", o->split, "Split (what happens anyway)");
  command->callback([&context, o] { context.run = [&context, o] { return split(context, *o); }; });
}

void add_merge(CLI::App& app, CommandContext& context) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("merge", "Merge the parts of a GGUF file");
  command->add_option("in", o->in, "The first part")->required();
  command->add_option("out", o->out, "The file to write; must not exist")->required();
  command->add_flag("--delete-splits", o->delete_splits, "Delete the parts once the file is there");
  command->add_flag("--dry-run", o->dry_run, "Show the size, write nothing");
  command->callback([&context, o] { context.run = [&context, o] { return merge(context, *o); }; });
}

} // namespace modeld::daemon
