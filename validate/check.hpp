// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace modeld::validate {

/// A whole safetensors file, header only: recognises what else it may be (GN, PK, LM), then ST.
Report check_safetensors_file(std::span<const std::byte> file, std::string_view path,
                              Profile profile = Profile::strict, const Limits& limits = {});

/// Adds a warning where an accepted file is a Python pickle in another reading (PK-01).
void warn_if_also_pickle(std::span<const std::byte> file, Report& report);

/// A whole GGUF file, metadata only: GN, LM, then GG.
Report check_gguf_file(std::span<const std::byte> file, std::string_view path,
                       Profile profile = Profile::strict, const Limits& limits = {});

} // namespace modeld::validate
