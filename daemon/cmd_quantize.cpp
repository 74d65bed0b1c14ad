// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"
#include "daemon/gguf_input.hpp"
#include "daemon/quantize_report.hpp"
#include "daemon/repeated_option.hpp"
#include "daemon/write_models.hpp"
#include "quantize/recipe/imatrix.hpp"
#include "quantize/recipe/quantize_model.hpp"
#include "quantize/recipe/quantize_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <memory>
#include <system_error>

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;

/// The options as they were typed; names and meaning are llama-quantize's.
struct Options {
  std::vector<std::string> words; ///< IN [OUT] TYPE [THREADS]
  unsigned threads = 0;
  std::string imatrix;
  quantize::ImatrixFilter filter;
  std::string output_type;
  std::string embedding_type;
  std::vector<std::string> tensor_types;
  std::string tensor_type_file;
  std::vector<std::string> overrides;
  std::string prune_layers;
  unsigned buffer_mib = 8192;
  bool pure = false;
  bool leave_output_tensor = false;
  bool allow_requantize = false;
  bool keep_split = false;
  bool dry_run = false;
  bool force = false;
};

/// What the words stand for.
struct Paths {
  fs::path in;
  fs::path out; ///< with keep_split: without number and extension
  std::string target;
};

tl::unexpected<Error> wrong(std::string message, std::string hint = {}) {
  return fail(Errc::invalid_argument, std::move(message), std::move(hint));
}

tl::unexpected<Error> unknown_target(const std::string& word) {
  return wrong(fmt::format("reading the type '{}': no such type", word),
               fmt::format("known types are {} COPY", fmt::join(all_target_names(), " ")));
}

Result<Paths> paths_of(Options& options) {
  constexpr std::string_view k_suffix = ".gguf";
  std::vector<std::string>& words = options.words;
  Paths paths{words.at(0), {}, {}};
  std::size_t next = 2;
  if (const auto target = quantize::parse_target_name(words.at(1))) {
    paths.target = *target;
    std::string name = "ggml-model-" + *target;
    if (!options.keep_split) name += k_suffix;
    paths.out = paths.in.parent_path() / name;
  } else {
    if (words.size() < 3) return unknown_target(words[1]);
    const auto named = quantize::parse_target_name(words[2]);
    if (!named) return unknown_target(words[2]);
    paths.target = *named;
    std::string out = words[1];
    if (options.keep_split && out.ends_with(k_suffix)) out.resize(out.size() - k_suffix.size());
    paths.out = out;
    next = 3;
  }
  if (words.size() > next) {
    const std::string& word = words[next];
    const auto read = std::from_chars(word.data(), word.data() + word.size(), options.threads);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size()) {
      return wrong(fmt::format("reading the number of threads '{}': no whole number", word),
                   "usage: modelctl quantize IN.gguf [OUT.gguf] TYPE [THREADS]");
    }
  }
  if (words.size() > next + 1) {
    return wrong(fmt::format("quantizing: '{}' is one word too many", words[next + 1]),
                 "usage: modelctl quantize IN.gguf [OUT.gguf] TYPE [THREADS]");
  }
  return paths;
}

Result<std::string> read_text_file(const fs::path& path) {
  std::error_code ec;
  const auto size = fs::file_size(path, ec);
  if (ec) {
    return fail(from_errno(ec.value(), fmt::format("reading '{}'", path.string())));
  }
  constexpr std::uintmax_t k_limit = 1 << 20;
  if (size > k_limit) {
    return wrong(fmt::format("reading '{}': {} bytes; a list of types has at most {}",
                             path.string(), size, k_limit));
  }
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    return fail(Errc::io, fmt::format("reading '{}': read error", path.string()));
  }
  return text;
}

Result<void> read_types(const Options& options, Recipe& recipe) {
  if (!options.output_type.empty()) {
    MODELD_ASSIGN(recipe.output_type, quantize::parse_tensor_type(options.output_type));
  }
  if (!options.embedding_type.empty()) {
    MODELD_ASSIGN(recipe.embedding_type, quantize::parse_tensor_type(options.embedding_type));
  }
  for (const std::string& text : options.tensor_types) {
    MODELD_ASSIGN(auto rule, quantize::parse_tensor_rule(text));
    recipe.tensor_types.push_back(std::move(rule));
  }
  if (!options.tensor_type_file.empty()) {
    MODELD_ASSIGN(const std::string text, read_text_file(options.tensor_type_file));
    MODELD_ASSIGN(auto rules, quantize::parse_tensor_rules(text));
    recipe.tensor_types.insert(recipe.tensor_types.end(), rules.begin(), rules.end());
  }
  return {};
}

Result<std::shared_ptr<const quantize::Importance>> read_importance(const Options& options) {
  if (options.imatrix.empty()) return nullptr;
  MODELD_ASSIGN(const auto files, open_one_file(options.imatrix));
  MODELD_ASSIGN(const auto bytes, files->bytes(files->entries().front().path));
  MODELD_ASSIGN(const auto matrix, quantize::read_imatrix(bytes, options.imatrix));
  MODELD_ASSIGN(auto importance,
                quantize::make_importance(matrix, options.imatrix, options.filter));
  return std::make_shared<const quantize::Importance>(std::move(importance));
}

Result<quantize::QuantizeRequest> request_of(const Options& options, const std::string& target) {
  quantize::QuantizeRequest request;
  request.recipe.target = target;
  request.only_copy = target == "COPY";
  request.recipe.pure = options.pure;
  request.recipe.leave_output_tensor = options.leave_output_tensor;
  request.recipe.keep_split = options.keep_split;
  request.recipe.force = options.force;
  request.allow_requantize = options.allow_requantize;
  MODELD_TRY(read_types(options, request.recipe));
  for (const std::string& text : options.overrides) {
    MODELD_ASSIGN(auto kv, quantize::parse_kv_override(text));
    request.overrides.push_back(std::move(kv));
  }
  if (!options.prune_layers.empty()) {
    MODELD_ASSIGN(request.prune_layers, quantize::parse_layer_list(options.prune_layers));
  }
  MODELD_ASSIGN(request.importance, read_importance(options));
  return request;
}

/// Everything is written before anything gets its name.
std::vector<fs::path> output_paths(const Paths& paths, std::size_t count, bool keep_split) {
  if (!keep_split) return {paths.out};
  std::vector<fs::path> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back(quantize::part_path(paths.out.string(), i, count));
  }
  return all;
}

Result<int> run(CommandContext& context, Options& options) {
  if (!options.filter.include.empty() && !options.filter.exclude.empty()) {
    return wrong("--include-weights and --exclude-weights exclude each other");
  }
  if (options.buffer_mib == 0) return wrong("--max-buffer-size must be at least 1 MiB");
  MODELD_ASSIGN(const Paths paths, paths_of(options));
  MODELD_ASSIGN(auto request, request_of(options, paths.target));
  MODELD_ASSIGN(const GgufInput input, open_gguf_input(paths.in));
  if (options.keep_split) request.parts = input.source.parts;
  const auto plan = options.dry_run ? quantize::PlanOnly::yes : quantize::PlanOnly::no;
  MODELD_ASSIGN(const auto made, quantize::quantize_model(input.source.model, request, plan));
  if (request.importance) {
    for (const std::string& warning : request.importance->warnings) {
      context.out.message("warning: " + warning);
    }
  }
  show_warnings(context.out, made);
  if (options.dry_run) {
    show_plan(context.out, input.source.model, made);
    return 0;
  }
  const auto outputs = output_paths(paths, made.parts.size(), options.keep_split);
  MODELD_TRY(write_models(context.out, made.parts, {outputs, input.paths, *input.files},
                          "quantizing", options.threads));
  show_result(context.out, made, outputs);
  return 0;
}

void add_options(CLI::App& command, Options& o) {
  command.add_option("files", o.words, "IN.gguf [OUT.gguf] TYPE [THREADS]")
      ->required()
      ->expected(2, 4);
  command.add_option("-j,--threads", o.threads, "Threads; one for each CPU where not given");
  command.add_option("--imatrix", o.imatrix, "Importance matrix, GGUF or .dat");
  repeated(command.add_option("--include-weights", o.filter.include,
                              "Use the matrix only for tensors named so"));
  repeated(command.add_option("--exclude-weights", o.filter.exclude,
                              "Do not use the matrix for these tensors"));
  command.add_option("--output-tensor-type", o.output_type, "Type of output.weight");
  command.add_option("--token-embedding-type", o.embedding_type, "Type of the token embeddings");
  repeated(command.add_option("--tensor-type", o.tensor_types,
                              "PATTERN=TYPE for tensors; the first wins"));
  command.add_option("--tensor-type-file", o.tensor_type_file, "File with such rules");
  repeated(command.add_option("--override-kv", o.overrides, "KEY=TYPE:VALUE for the metadata"));
  command.add_option("--prune-layers", o.prune_layers, "Layers to leave out: L0,L1,...");
  command.add_option("--max-buffer-size", o.buffer_mib,
                     "MiB of rows in memory; accepted, and always far less is used");
  command.add_flag("--pure", o.pure, "The same type for every tensor");
  command.add_flag("--leave-output-tensor", o.leave_output_tensor, "Leave output.weight as it is");
  command.add_flag("--allow-requantize", o.allow_requantize, "Quantize what is quantized already");
  command.add_flag("--keep-split", o.keep_split, "As many parts as the source has");
  command.add_flag("--dry-run", o.dry_run, "Show types and sizes, write nothing");
  command.add_flag("--force", o.force, "Go on where a rule matches nothing or two contradict");
}

} // namespace

void add_quantize(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("quantize", "Quantize a GGUF file");
  add_options(*command, *options);
  command->callback([&context, options] {
    context.run = [&context, options] { return run(context, *options); };
  });
}

} // namespace modeld::daemon
