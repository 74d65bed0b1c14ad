// SPDX-License-Identifier: Apache-2.0
#include "daemon/command.hpp"

int main(int argc, char** argv) {
  return modeld::daemon::run_modelctl(argc, argv);
}
