// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/config.hpp"
#include "schema/result.hpp"

namespace modeld::daemon {

/// What is made again before the store opens, where it is lost (store::StoreOptions).
struct StoreRepair {
  bool rebuild_index = false;
  bool restore_marker = false;
};

/// Runs the daemon until SIGTERM or SIGINT. Blocks these signals for the whole process.
Result<void> run_daemon(const Config& config, const StoreRepair& repair = {});

} // namespace modeld::daemon
