// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"

namespace modeld::daemon {
namespace {

using AddCommand = void (*)(CLI::App&, CommandContext&);

// In the order of `modelctl --help`.
// clang-format off
constexpr AddCommand k_commands[] = {
    add_get,
    add_pull,
    add_exec,
    add_ls,
    add_show,
    add_rm,
    add_pin,
    add_unpin,
    add_link,
    add_unlink,
    add_import,
    add_export,
    add_jobs,
    add_watch,
    add_cancel,
    add_usage,
    add_gc,
    add_fsck,
    add_scrub,
    add_repair,
    add_check,
    add_inspect,
    add_estimate,
    add_audit,
    add_convert,
    add_convert_lora,
    add_quantize,
    add_split,
    add_merge,
    add_imatrix,
    add_login,
    add_logout,
    add_whoami,
    add_health,
    add_version,
};
// clang-format on

} // namespace

void add_commands(CLI::App& app, CommandContext& context) {
  for (const AddCommand add : k_commands) {
    add(app, context);
  }
}

} // namespace modeld::daemon
