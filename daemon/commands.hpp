// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/command.hpp"

namespace modeld::daemon {

void add_quantize(CLI::App& app, CommandContext& context);
void add_check(CLI::App& app, CommandContext& context);
void add_version(CLI::App& app, CommandContext& context);

} // namespace modeld::daemon
