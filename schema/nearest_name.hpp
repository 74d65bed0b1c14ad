// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace modeld {

/// How many single edits lie between two names: a character inserted, deleted or replaced, or two
/// neighbours swapped (optimal string alignment). Time and memory are the product of the lengths.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The name most like `name`, the first of those that are equally near; empty where there are none.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

} // namespace modeld
