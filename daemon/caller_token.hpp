// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <string>

namespace modeld::daemon {

/// The Hub token of whoever runs this process, where the Hub's own tools look (fetch::find_token).
/// Empty without one.
Result<std::string> caller_token();

} // namespace modeld::daemon
