// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <string>

namespace CLI {
class App;
}

namespace modeld::daemon {

/// `--limit-rate` of a command that downloads; `text` stays empty where it is not given.
void add_limit_rate(CLI::App& command, std::string& text);

/// Into the body of the request; invalid_argument for what is no rate.
Result<void> put_limit_rate(boost::json::object& body, const std::string& text);

} // namespace modeld::daemon
