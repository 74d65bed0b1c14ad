// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/convert_report.hpp"
#include "daemon/quantize_report.hpp"
#include "daemon/write_models.hpp"
#include "quantize/convert/config.hpp"
#include "quantize/convert/convert.hpp"
#include "quantize/gguf/gguf_source.hpp"
#include "quantize/recipe/quantize_model.hpp"
#include "store/folder_files.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <system_error>
#include <vector>

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// The options as they were typed; names and meaning are those of the reference's converter.
struct Options {
  std::string folder;
  std::string outfile;
  std::string outtype = "auto";
  std::string pre;
  std::string model_name;
  std::string metadata;
  std::string split_max_size = "0";
  std::uint64_t split_max_tensors = 0;
  unsigned threads = 0;
  bool no_tensor_first_split = false;
  bool vocab_only = false;
  bool big_endian = false;
  bool mmproj = false;
  bool dense_modules = false;
  bool mistral_format = false;
  bool no_community_template = false;
  bool no_mtp = false;
  bool mtp = false;
  bool fp8_as_q8 = false;
  bool fuse_gate_up = false;
  bool ignore_card = false;
  bool dry_run = false;
  bool force = false;
  bool list = false;
  bool accepted = false; ///< options that change how the reference works, not what it writes
};

/// What the converter writes itself; every other type is a recipe of the quantizer's.
constexpr std::array<std::string_view, 7> k_converter_types{"auto", "f32",   "f16",  "bf16",
                                                            "q8_0", "tq1_0", "tq2_0"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_converter_type(const std::string& name) {
  return std::find(k_converter_types.begin(), k_converter_types.end(), lower(name)) !=
         k_converter_types.end();
}

Result<std::string> read_text(const fs::path& path) {
  std::error_code ec;
  const auto size = fs::file_size(path, ec);
  if (ec) {
    return fail(
        from_errno(ec.value(), fmt::format("reading '{}': {}", path.string(), ec.message())));
  }
  const auto files = store::make_file_set(
      path.filename().string(), {{path.filename().string(), fs::absolute(path, ec), size}});
  MODELD_ASSIGN(const auto bytes, files->bytes(path.filename().string()));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<quantize::ConvertOptions> convert_options(const Options& o) {
  quantize::ConvertOptions out;
  out.outtype = is_converter_type(o.outtype) ? o.outtype : "auto";
  out.pre = o.pre;
  if (!o.model_name.empty()) out.model_name = o.model_name;
  if (!o.metadata.empty()) {
    MODELD_ASSIGN(const std::string text, read_text(o.metadata));
    MODELD_ASSIGN(out.metadata, quantize::parse_python_json(text, o.metadata));
  }
  out.force = o.force;
  out.vocab_only = o.vocab_only;
  out.big_endian = o.big_endian;
  out.no_mtp = o.no_mtp;
  out.mtp_only = o.mtp;
  out.fp8_as_q8 = o.fp8_as_q8;
  out.fuse_gate_up = o.fuse_gate_up;
  out.mmproj = o.mmproj;
  out.dense_modules = o.dense_modules;
  out.mistral_format = o.mistral_format;
  out.community_template = !o.no_community_template;
  out.ignore_card = o.ignore_card;
  return out;
}

/// Converted, and quantized in the same pass where the type asks for it.
struct Made {
  quantize::ConvertResult converted; ///< its model is moved into parts
  std::vector<quantize::GgufModel> parts;
  std::vector<quantize::GgufModel> adapters; ///< as converted.adapters names them
  std::string file_type;
};

Result<Made> make(const FileSet& files, const Options& o) {
  MODELD_ASSIGN(const auto options, convert_options(o));
  MODELD_ASSIGN(const std::uint64_t split_size, quantize::parse_split_size(o.split_max_size));
  Made made;
  MODELD_ASSIGN(made.converted, quantize::convert(files, options));
  made.file_type = made.converted.file_type;
  quantize::GgufModel model = std::move(made.converted.model);
  if (!is_converter_type(o.outtype)) {
    quantize::QuantizeRequest request;
    MODELD_ASSIGN(request.recipe, Recipe::parse_target(o.outtype));
    request.recipe.force = o.force;
    MODELD_ASSIGN(auto quantized, quantize::quantize_model(model, request));
    made.file_type = request.recipe.target;
    made.converted.warnings.insert(made.converted.warnings.end(), quantized.warnings.begin(),
                                   quantized.warnings.end());
    model = std::move(quantized.parts.at(0));
  }
  made.parts = quantize::split_model(std::move(model), o.split_max_tensors, split_size,
                                     o.no_tensor_first_split);
  for (const std::string& name : made.converted.adapters) {
    quantize::ConvertOptions one = options;
    one.adapter = name;
    MODELD_ASSIGN(auto adapter, quantize::convert(files, one));
    made.adapters.push_back(std::move(adapter.model));
  }
  return made;
}

/// Where the output goes: a folder takes the reference's name for the file.
Result<fs::path> output_path(const Options& o, const Made& made) {
  const fs::path given = o.outfile.empty() ? fs::path(o.folder) : fs::path(o.outfile);
  std::error_code ec;
  if (!fs::is_directory(given, ec)) {
    MODELD_ASSIGN(const std::string name,
                  quantize::fill_file_name(given.filename().string(), made.file_type));
    return given.parent_path() / name;
  }
  return given / quantize::default_file_name(made.converted.metadata, made.file_type,
                                             made.converted.named_for);
}

std::vector<fs::path> part_paths(const fs::path& path, std::size_t parts) {
  if (parts == 1) return {path};
  const std::string prefix = (path.parent_path() / path.stem()).string();
  std::vector<fs::path> out;
  for (std::size_t i = 0; i < parts; ++i) {
    out.emplace_back(quantize::part_path(prefix, i, parts));
  }
  return out;
}

/// Adapters stand beside the model, as the reference names them.
void add_adapters(Made& made, const fs::path& path, std::vector<fs::path>& paths) {
  for (std::size_t i = 0; i < made.adapters.size(); ++i) {
    paths.push_back(path.parent_path() / fmt::format("lora-{}-{}", made.converted.adapters[i],
                                                     path.filename().string()));
    made.parts.push_back(std::move(made.adapters[i]));
  }
  made.adapters.clear();
}

Result<int> list_classes(Output& out) {
  MODELD_ASSIGN(const auto classes, quantize::supported_classes());
  json::array all;
  for (const auto& one : classes) {
    if (!out.json()) {
      out.result(fmt::format("{:<44} {:<18} {}", one.class_name, one.arch, one.title));
    }
    all.push_back({{"class", one.class_name},
                   {"arch", one.arch},
                   {"family", one.title},
                   {"projector", one.projector}});
  }
  if (out.json()) out.result({{"classes", std::move(all)}});
  return 0;
}

Result<int> run(CommandContext& context, const Options& o) {
  if (o.list) return list_classes(context.out);
  if (o.folder.empty()) {
    return fail(Errc::invalid_argument, "converting: the folder of the checkpoint is missing",
                "usage: modelctl convert DIR [-o OUT] [--outtype TYPE]");
  }
  MODELD_ASSIGN(const auto files, store::open_folder(o.folder));
  MODELD_ASSIGN(Made made, make(*files, o));
  for (const std::string& warning : made.converted.warnings) {
    context.out.message("warning: " + warning);
  }
  MODELD_ASSIGN(const fs::path path, output_path(o, made));
  auto paths = part_paths(path, made.parts.size());
  add_adapters(made, path, paths);
  if (o.dry_run) {
    MODELD_TRY(show_plan(context.out, made.converted.family, made.parts, paths));
    return 0;
  }
  std::vector<fs::path> inputs;
  for (const FileSet::Entry& entry : files->entries()) {
    inputs.push_back(fs::path(o.folder) / entry.path);
  }
  MODELD_TRY(
      write_models(context.out, made.parts, {paths, inputs, *files}, "converting", o.threads));
  show_written(context.out, paths);
  return 0;
}

void add_options(CLI::App& command, Options& o) {
  command.add_option("model", o.folder, "Folder of the checkpoint");
  command.add_option("-o,--outfile", o.outfile,
                     "Output; {ftype} becomes the type. A folder, or nothing: named by the model");
  command.add_option("--outtype", o.outtype,
                     "f32, f16, bf16, q8_0, tq1_0, tq2_0, auto, or any type of the quantizer");
  command.add_option("-j,--threads", o.threads, "Threads; one for each CPU where not given");
  command.add_option("--pre", o.pre, "Pre-tokenizer label, taken as it is");
  command.add_option("--model-name", o.model_name, "Name of the model");
  command.add_option("--metadata", o.metadata, "JSON file with general.* keys");
  command.add_option("--split-max-tensors", o.split_max_tensors, "Tensors in a part, at most");
  command.add_option("--split-max-size", o.split_max_size,
                     "Bytes in a part, at most: N, NK, NM, NG");
  command.add_flag("--no-tensor-first-split", o.no_tensor_first_split,
                   "The first part has the metadata alone");
  command.add_flag("--vocab-only", o.vocab_only, "The vocabulary alone");
  command.add_flag("--bigendian", o.big_endian, "For a machine of the other byte order");
  command.add_flag("--mmproj", o.mmproj,
                   "The vision and audio towers of a multimodal model, with their projector");
  command.add_flag("--sentence-transformers-dense-modules", o.dense_modules,
                   "With the dense layers behind the pooling");
  command.add_flag("--mistral-format", o.mistral_format,
                   "From Mistral's own form: params.json and consolidated*.safetensors");
  command.add_flag("--disable-mistral-community-chat-template", o.no_community_template,
                   "With --mistral-format: no chat template but the checkpoint's own");
  command.add_flag("--mtp", o.mtp, "The layers for multi-token prediction alone");
  command.add_flag("--no-mtp,--no-nextn", o.no_mtp, "Without these layers");
  command.add_flag("--fp8-as-q8", o.fp8_as_q8, "What was FP8 becomes Q8_0");
  command.add_flag("--fuse-gate-up-exps", o.fuse_gate_up, "Gate and up experts in one tensor");
  command.add_flag("--ignore-model-card", o.ignore_card, "Go on without a malformed model card");
  command.add_flag("--dry-run", o.dry_run, "Show every tensor and the size, write nothing");
  command.add_flag("--force", o.force, "Write the reference's file also where it is known wrong");
  command.add_flag("--list,--print-supported-models", o.list, "Show what can be converted");
  command.add_flag("--no-lazy,--use-temp-file,--verbose", o.accepted,
                   "Accepted for scripts; changes nothing");
}

} // namespace

void add_convert(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("convert", "Convert a checkpoint to GGUF");
  add_options(*command, *options);
  command->callback([&context, options] {
    context.run = [&context, options] { return run(context, *options); };
  });
}

} // namespace modeld::daemon
