// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"

namespace modeld::quantize {

/// What a family's file may not contain although every line of it is well formed: a source name
/// that two rules take, an output that two rules make, a hole in an output that its source does not
/// fill, an assignment that nothing reads. internal, naming the file and the rule.
Result<void> check_architecture(const Architecture& arch);

} // namespace modeld::quantize
