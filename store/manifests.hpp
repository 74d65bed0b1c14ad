// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/records.hpp"

#include <string>
#include <string_view>

namespace modeld::store {

/// pins/<name>.json
std::string pin_to_json(const Pin& pin);
Result<Pin> pin_from_json(std::string_view text);

} // namespace modeld::store
