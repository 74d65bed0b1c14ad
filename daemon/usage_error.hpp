// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/error.hpp"

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace modeld::daemon {

/// What is wrong with a command line: the word, the command that it was given to, and the nearest
/// word that would be right. `app` is the program that `error` came out of while it parsed.
Error usage_error(CLI::App& app, const CLI::ParseError& error);

} // namespace modeld::daemon
