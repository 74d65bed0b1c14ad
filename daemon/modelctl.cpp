// SPDX-License-Identifier: Apache-2.0
#include "daemon/command.hpp"
#include "daemon/worker_main.hpp"

#include <string_view>

int main(int argc, char** argv) {
  // Files are parsed in a process of their own, which is this program once more.
  if (argc == 2 && std::string_view(argv[1]) == "worker") return modeld::daemon::run_worker();
  return modeld::daemon::run_modelctl(argc, argv);
}
