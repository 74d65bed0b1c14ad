// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit.hpp"
#include "daemon/commands.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/stored_folder.hpp"
#include "daemon/work_progress.hpp"
#include "store/folder_files.hpp"
#include "store/mapped_file.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <memory>

namespace modeld::daemon {
namespace {

struct Options {
  std::string folder;
  std::string gguf;
};

Result<int> run_audit(CommandContext& context, const Options& options) {
  MODELD_ASSIGN(const auto stored, path_or_stored(context, options.folder));
  MODELD_ASSIGN(const auto files, store::open_folder(stored.path));
  store::MappedFile gguf;
  if (!options.gguf.empty()) {
    MODELD_ASSIGN(gguf, store::MappedFile::open(options.gguf));
  }
  Progress progress;
  Audit result;
  {
    const WorkProgress shown(context.out, progress, "auditing");
    MODELD_ASSIGN(result, audit(*files, gguf.bytes(), progress));
  }
  if (context.out.json())
    context.out.result(safe_json(audit_json(result)));
  else
    context.out.result(audit_text(result));
  return result.balanced() ? 0 : info(Errc::malformed).exit_status;
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
  command->add_option("--gguf", options->gguf, "A conversion of it, to compare values with");
  command->callback([&context, options] {
    context.run = [&context, options] { return run_audit(context, *options); };
  });
}

} // namespace modeld::daemon
