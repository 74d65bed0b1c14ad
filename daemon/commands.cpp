// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.hpp"

#include <array>

namespace modeld::daemon {
namespace {

using AddCommand = void (*)(CLI::App&, CommandContext&);

// In the order of `modelctl --help`.
constexpr std::array<AddCommand, 3> k_commands{
    add_check,
    add_quantize,
    add_version,
};

} // namespace

void add_commands(CLI::App& app, CommandContext& context) {
  for (const AddCommand add : k_commands) {
    add(app, context);
  }
}

} // namespace modeld::daemon
