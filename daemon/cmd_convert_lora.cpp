// SPDX-License-Identifier: Apache-2.0
#include "daemon/client.hpp"
#include "daemon/commands.hpp"
#include "daemon/convert_report.hpp"
#include "daemon/request.hpp"
#include "daemon/write_models.hpp"
#include "quantize/convert/adapter.hpp"
#include "quantize/convert/convert.hpp"
#include "store/folder_files.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <system_error>

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string adapter;
  std::string base;
  std::string base_id;
  std::string outfile;
  std::string outtype = "f32";
  unsigned threads = 0;
  bool big_endian = false;
  bool ignore_card = false;
  bool dry_run = false;
  bool force = false;
  bool accepted = false; ///< options that change how the reference works, not what it writes
};

/// The folder of a snapshot that the daemon has.
Result<std::string> stored_folder(CommandContext& context, const std::string& id) {
  const std::string hint =
      fmt::format("run 'modelctl pull {}', or give the folder of the base model "
                  "with --base; its small files are enough",
                  id);
  Client client(context.socket, {});
  auto answer = client.get("/v1/snapshots/" + url_part(id));
  if (!answer) {
    return fail(answer.error().code,
                fmt::format("looking for the base model '{}': {}", id, answer.error().message),
                hint);
  }
  MODELD_ASSIGN(const auto snapshot,
                api::Snapshot::from_json(answer->body.at("snapshot").as_object()));
  return snapshot.path;
}

/// As given, else what the adapter says it was made for: a folder, or a model in the store.
Result<std::string> base_folder(CommandContext& context, const Options& o, const FileSet& adapter) {
  if (!o.base_id.empty()) {
    MODELD_TRY(check_ref(o.base_id));
    return stored_folder(context, o.base_id);
  }
  if (!o.base.empty()) return o.base;
  MODELD_ASSIGN(const auto config, quantize::read_adapter_config(adapter, o.force));
  std::error_code ec;
  if (config.base_model.empty()) {
    return fail(
        Errc::invalid_argument,
        fmt::format("converting '{}': adapter_config.json does not name the base model", o.adapter),
        "give the folder of the base model with --base; its small files are enough");
  }
  if (fs::is_directory(config.base_model, ec)) return config.base_model;
  if (!check_ref(config.base_model)) {
    return fail(Errc::not_found,
                fmt::format("converting '{}': there is no folder '{}', which adapter_config.json "
                            "names as the base model",
                            o.adapter, config.base_model),
                "give the folder of the base model with --base; its small files are enough");
  }
  return stored_folder(context, config.base_model);
}

Result<fs::path> output_path(const Options& o, const quantize::ConvertResult& made) {
  const fs::path given = o.outfile.empty() ? fs::path(o.adapter) : fs::path(o.outfile);
  std::error_code ec;
  if (fs::is_directory(given, ec)) return given / made.file_name();
  MODELD_ASSIGN(const std::string name,
                quantize::fill_file_name(given.filename().string(), made.file_type));
  return given.parent_path() / name;
}

Result<int> run(CommandContext& context, const Options& o) {
  MODELD_ASSIGN(const auto adapter, store::open_folder(o.adapter));
  MODELD_ASSIGN(const std::string base_path, base_folder(context, o, *adapter));
  MODELD_ASSIGN(const auto base, store::open_folder(base_path));
  quantize::AdapterOptions options;
  options.outtype = o.outtype;
  options.force = o.force;
  options.big_endian = o.big_endian;
  options.ignore_card = o.ignore_card;
  MODELD_ASSIGN(quantize::ConvertResult made, quantize::convert_adapter(*adapter, *base, options));
  for (const std::string& warning : made.warnings) {
    context.out.message("warning: " + warning);
  }
  for (const std::string& name : made.left_out) {
    context.out.message(fmt::format("warning: '{}' was left out", name));
  }
  MODELD_ASSIGN(const fs::path path, output_path(o, made));
  const std::vector<fs::path> paths{path};
  std::vector<quantize::GgufModel> parts;
  parts.push_back(std::move(made.model));
  if (o.dry_run) {
    MODELD_TRY(show_plan(context.out, made.family, parts, paths));
    return 0;
  }
  std::vector<fs::path> inputs;
  for (const FileSet::Entry& entry : adapter->entries()) {
    inputs.push_back(fs::path(o.adapter) / entry.path);
  }
  MODELD_TRY(write_models(context.out, parts, {paths, inputs, *adapter}, "converting", o.threads));
  show_written(context.out, paths);
  return 0;
}

void add_options(CLI::App& command, Options& o) {
  command.add_option("adapter", o.adapter, "Folder of the adapter, as PEFT saves it")->required();
  command.add_option("--base", o.base, "Folder of the base model; its weights are not needed");
  command.add_option("--base-model-id", o.base_id, "Base model that the daemon has: org/name");
  command.add_option(
      "-o,--outfile", o.outfile,
      "Output; {ftype} becomes the type. A folder, or nothing: named by the adapter");
  command.add_option("--outtype", o.outtype, "f32, f16, bf16, q8_0, or auto");
  command.add_option("-j,--threads", o.threads, "Threads; one for each CPU where not given");
  command.add_flag("--bigendian", o.big_endian, "For a machine of the other byte order");
  command.add_flag("--ignore-model-card", o.ignore_card, "Go on without a malformed model card");
  command.add_flag("--dry-run", o.dry_run, "Show every tensor and the size, write nothing");
  command.add_flag("--force", o.force, "Write the reference's file also where it is known wrong");
  command.add_flag("--no-lazy,--verbose,--trust-remote-code", o.accepted,
                   "Accepted for scripts; changes nothing");
}

} // namespace

void add_convert_lora(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("convert-lora", "Convert a LoRA adapter to GGUF");
  add_options(*command, *options);
  command->callback([&context, options] {
    context.run = [&context, options] { return run(context, *options); };
  });
}

} // namespace modeld::daemon
