// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/config.hpp"
#include "schema/result.hpp"

namespace modeld::daemon {

/// Runs the daemon until SIGTERM or SIGINT. Blocks these signals for the whole process.
/// With `rebuild_index` the store's index is made again from its manifests first.
Result<void> run_daemon(const Config& config, bool rebuild_index = false);

} // namespace modeld::daemon
