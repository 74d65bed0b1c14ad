// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace modeld::daemon {

/// A LinkPlan of the contract as a script for sh, for whoever may write there: it makes folders,
/// links and small files, and stops at anything that is there already. form: symlink, hardlink,
/// reflink or copy; empty is symlink.
Result<std::string> link_script(const boost::json::object& plan, std::string_view form);

} // namespace modeld::daemon
