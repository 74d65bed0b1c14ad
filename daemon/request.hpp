// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/caller_token.hpp"
#include "daemon/client.hpp"
#include "daemon/command.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

// What the commands that ask the daemon have in common.

namespace modeld::daemon {

/// Whether a ref reads, before anyone is asked: so that a typing error is told without a daemon.
Result<void> check_ref(std::string_view ref);

/// An object inside an answer; internal where it is missing.
Result<const boost::json::object*> object_member(const boost::json::object& from,
                                                 std::string_view name);

/// Prints a finished answer: the member's "path" alone, or with --json the whole object. Of a job
/// that was not waited for, its id.
Result<int> show_result(CommandContext& context, const boost::json::object& result,
                        std::string_view member);

} // namespace modeld::daemon
