// SPDX-License-Identifier: Apache-2.0
#include "daemon/version_text.hpp"

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app("Model repository daemon", "modeld");
  app.set_version_flag("--version", modeld::daemon::version_text("modeld"));
  CLI11_PARSE(app, argc, argv);
  return 0;
}
