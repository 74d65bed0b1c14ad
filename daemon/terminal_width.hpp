// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace modeld::daemon {

/// How many columns a progress bar may have on the terminal of stderr; 79 where it does not say.
std::size_t terminal_width();

} // namespace modeld::daemon
