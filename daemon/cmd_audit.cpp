// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_input.hpp"
#include "daemon/commands.hpp"
#include "daemon/stored_folder.hpp"
#include "daemon/work_progress.hpp"
#include "daemon/worker_process.hpp"
#include "daemon/worker_tasks.hpp"
#include "schema/json.hpp"
#include "validate/escape.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

struct Options {
  std::string folder;
  std::string gguf;
  bool every = false;
};

// The checkpoint's files and those of the output, in one list for the worker.
class Inputs {
public:
  static Result<Inputs> open(const Options& options, const std::string& folder) {
    Inputs inputs;
    if (fs::is_regular_file(fs::path(folder)))
      return fail(
          Errc::invalid_argument,
          fmt::format("auditing '{}': it is a file, expected a checkpoint's folder", folder),
          "give a GGUF file with --gguf");
    MODELD_ASSIGN(inputs.model_, CheckInput::open(folder));
    // An account of a part would not be one.
    if (const auto& left_out = inputs.model_->left_out(); !left_out.empty())
      return fail(left_out.front().why);
    if (options.gguf.empty()) return inputs;
    if (fs::is_directory(fs::path(options.gguf)))
      return fail(Errc::invalid_argument,
                  fmt::format("auditing '{}': it is a folder, expected a GGUF file", options.gguf));
    MODELD_ASSIGN(inputs.output_, CheckInput::open(options.gguf));
    return inputs;
  }

  WorkerRequest request(const Options& options, bool as_json) const {
    WorkerRequest request;
    request.task = WorkerRequest::Task::audit;
    request.name = model_->files().name();
    if (output_) add(output_->files(), k_audit_output, request);
    add(model_->files(), k_audit_model, request);
    request.options = {{"json", as_json},
                       {"every", options.every},
                       {"gguf", fs::path(options.gguf).filename().string()}};
    return request;
  }

  Result<Descriptor> open_file(std::size_t index) const {
    const std::size_t outputs = output_ ? output_->files().entries().size() : 0;
    if (index < outputs) return output_->open_file(index);
    return model_->open_file(index - outputs);
  }

  // GN-07: what is said about files that were changed in between is worth nothing.
  Result<void> unchanged() const {
    for (const auto* input : {&model_, &output_}) {
      if (!*input) continue;
      const auto changed = (*input)->changed();
      if (changed.empty()) continue;
      return fail(Error{Errc::corrupt,
                        fmt::format("auditing '{}': the file changed while it was read",
                                    validate::escape_text((*input)->shown(changed.front()), 4096)),
                        "audit it again when nobody writes to it",
                        {},
                        0}
                      .with_detail("rule", "GN-07"));
    }
    return {};
  }

private:
  // The worker finds files by their place, so the order has to be that of the whole list.
  static void add(const FileSet& files, std::string_view prefix, WorkerRequest& request) {
    for (const FileSet::Entry& entry : files.entries())
      request.files.push_back({std::string(prefix) + entry.path, entry.size});
  }

  std::optional<CheckInput> model_;
  std::optional<CheckInput> output_;
};

Result<std::string> ask_worker(CommandContext& context, const Options& options,
                               const Inputs& inputs) {
  Progress progress;
  const WorkProgress shown(context.out, progress, "auditing");
  return read_from_worker(
      inputs.request(options, context.out.json()),
      [&inputs](std::size_t index) { return inputs.open_file(index); }, progress);
}

Result<int> run_audit(CommandContext& context, const Options& options) {
  MODELD_ASSIGN(const StoredFolder folder, path_or_stored(context, options.folder));
  MODELD_ASSIGN(const Inputs inputs, Inputs::open(options, folder.path));
  const auto text = ask_worker(context, options, inputs);
  // A file that shrinks takes the worker along: the change is the reason then.
  if (text || text.error().code != Errc::cancelled) MODELD_TRY(inputs.unchanged());
  if (!text) return fail(text.error());
  MODELD_ASSIGN(const auto value, parse_json(*text, "a worker's answer"));
  if (!value.is_object()) return fail(Errc::internal, "parsing a worker's answer: no object");
  const json::object& answer = value.get_object();
  MODELD_ASSIGN(const std::string shown, json_string(answer, "text"));
  context.out.result(shown);
  const auto* balanced = answer.if_contains("balanced");
  const bool good = balanced != nullptr && balanced->is_bool() && balanced->get_bool();
  return good ? 0 : info(Errc::malformed).exit_status;
}

} // namespace

void add_audit(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "audit", "Account for every tensor of a checkpoint, and of the GGUF file made of it");
  command
      ->add_option("folder", options->folder,
                   "The checkpoint's folder, or a ref of what was pulled")
      ->required();
  command->add_option("--gguf", options->gguf,
                      "A conversion of it, to compare values with; of a split the first part");
  command->add_flag("--tensors", options->every,
                    "List every output tensor, with its sources and what is done to them");
  command->callback([&context, options] {
    context.run = [&context, options] { return run_audit(context, *options); };
  });
}

} // namespace modeld::daemon
