// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace modeld::test {

/// The most bytes that `work` had from operator new at one time. Whoever calls it replaces the
/// program's allocator (counting_memory.cpp), which sanitizers want for themselves.
std::size_t peak_memory(const std::function<void()>& work);

} // namespace modeld::test
