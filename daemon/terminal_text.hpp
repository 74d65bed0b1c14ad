// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace modeld::daemon {

/// Text of a stranger (a file, a repository, a server) as it may be shown on a terminal: hidden
/// characters (validate/escape.hpp) and bytes that are not UTF-8 become visible escapes (\x1B,
/// \u{202E}); all else is kept.
std::string terminal_text(std::string_view text);

/// The same, with line feeds and tabs kept: for text that is meant to have lines.
std::string terminal_lines(std::string_view text);

} // namespace modeld::daemon
