// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/config.hpp"
#include "schema/result.hpp"

namespace modeld::daemon {

/// Runs the daemon until SIGTERM or SIGINT. Blocks these signals for the whole process.
Result<void> run_daemon(const Config& config);

} // namespace modeld::daemon
