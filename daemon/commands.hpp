// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/command.hpp"

namespace modeld::daemon {

// Each is in the file of its command, cmd_<name>.cpp.
void add_audit(CLI::App& app, CommandContext& context);
void add_cancel(CLI::App& app, CommandContext& context);
void add_check(CLI::App& app, CommandContext& context);
void add_convert(CLI::App& app, CommandContext& context);
void add_convert_lora(CLI::App& app, CommandContext& context);
void add_exec(CLI::App& app, CommandContext& context);
void add_export(CLI::App& app, CommandContext& context);
void add_fsck(CLI::App& app, CommandContext& context);
void add_gc(CLI::App& app, CommandContext& context);
void add_get(CLI::App& app, CommandContext& context);
void add_health(CLI::App& app, CommandContext& context);
void add_login(CLI::App& app, CommandContext& context);
void add_logout(CLI::App& app, CommandContext& context);
void add_whoami(CLI::App& app, CommandContext& context);
void add_imatrix(CLI::App& app, CommandContext& context);
void add_import(CLI::App& app, CommandContext& context);
void add_inspect(CLI::App& app, CommandContext& context);
void add_estimate(CLI::App& app, CommandContext& context);
void add_jobs(CLI::App& app, CommandContext& context);
void add_link(CLI::App& app, CommandContext& context);
void add_ls(CLI::App& app, CommandContext& context);
void add_merge(CLI::App& app, CommandContext& context);
void add_pin(CLI::App& app, CommandContext& context);
void add_pull(CLI::App& app, CommandContext& context);
void add_quantize(CLI::App& app, CommandContext& context);
void add_repair(CLI::App& app, CommandContext& context);
void add_rm(CLI::App& app, CommandContext& context);
void add_scrub(CLI::App& app, CommandContext& context);
void add_show(CLI::App& app, CommandContext& context);
void add_split(CLI::App& app, CommandContext& context);
void add_unlink(CLI::App& app, CommandContext& context);
void add_unpin(CLI::App& app, CommandContext& context);
void add_usage(CLI::App& app, CommandContext& context);
void add_version(CLI::App& app, CommandContext& context);
void add_watch(CLI::App& app, CommandContext& context);

} // namespace modeld::daemon
