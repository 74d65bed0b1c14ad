// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"
#include "daemon/daemon.hpp"
#include "daemon/paths.hpp"
#include "daemon/terminal_text.hpp"
#include "daemon/usage_error.hpp"
#include "daemon/version_text.hpp"
#include "daemon/worker_main.hpp"
#include "quantize/kernels/target.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace {

using namespace modeld;
using namespace modeld::daemon;

struct Options {
  ConfigSources sources;
  std::string config_file;
  bool foreground = false;
  bool print_config = false;
  StoreRepair repair;
};

Result<void> run(Options& options) {
  options.sources.file = options.config_file;
  options.sources.otherwise = default_config();
  MODELD_ASSIGN(const Config config, load_config(options.sources));
  if (options.print_config) {
    fmt::print("{}", print_config(config));
    return {};
  }
  // A wrong MODELD_KERNEL is told before anything starts.
  if (const auto& kernel = quantize::kernel_in_use(); !kernel) return fail(kernel.error());
  return run_daemon(config, options.repair);
}

int report(const Error& error) {
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", terminal_text(error.hint));
  fmt::print(stderr, "error: {} [{}]\n", terminal_text(error.message), info(error.code).slug);
  return info(error.code).exit_status;
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "worker") return run_worker();
  Options options;
  CLI::App app("Model repository daemon", "modeld");
  app.set_version_flag("--version", [] { return version_text("modeld"); });
  app.add_option("--root", options.sources.root, "Folder of the store");
  app.add_option("--socket", options.sources.socket, "Where to listen");
  app.add_option("--config", options.config_file, "Configuration file")->envname("MODELD_CONFIG");
  app.add_flag("--foreground", options.foreground,
               "Stay in the foreground; modeld always does, a service manager puts it behind");
  app.add_flag("--rebuild-index", options.repair.rebuild_index,
               "Make a new index of the store out of its manifests first");
  app.add_flag("--restore-marker", options.repair.restore_marker,
               "Write modeld.id again where it is lost and the rest of the folder is a store's");
  app.add_flag("--print-config", options.print_config,
               "Print the configuration with a comment for each setting, and end");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : report(usage_error(app, error));
  }
  try {
    const auto done = run(options);
    return done ? 0 : report(done.error());
  } catch (const std::exception& error) {
    return report({Errc::internal, fmt::format("running modeld: {}", error.what()), {}, {}, 0});
  }
}
