// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Where things are where nobody says otherwise (design.md sections 3 and 5): the system's places
// for root and for the user "modeld", the XDG places for anyone else.

namespace modeld::daemon {

/// Whether this process belongs to the system's daemon: effective user root or "modeld".
bool is_system_user();

/// /var/lib/modeld, or $XDG_DATA_HOME/modeld.
std::string default_root();
/// Where this user's daemon listens: /run/modeld/modeld.sock, or
/// $XDG_RUNTIME_DIR/modeld/modeld.sock.
std::string default_listen_socket();
/// Where a client looks: the user's own socket where it is there, else the system's.
std::string default_socket();
/// /etc/modeld/modeld.toml, or $XDG_CONFIG_HOME/modeld/modeld.toml.
std::string default_config();

} // namespace modeld::daemon
