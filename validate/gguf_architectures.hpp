// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace modeld::validate {

/// Whether llama.cpp v0.4.0 has an architecture of this name (GG-21); "clip" for projectors and
/// "controlvector" included.
bool is_known_gguf_architecture(std::string_view name);

} // namespace modeld::validate
