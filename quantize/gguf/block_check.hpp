// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/tensor_type.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace modeld::quantize {

/// The first block whose scale (or, for plain types, whose value) is NaN or infinite; for MXFP4
/// whose exponent is 255. Nothing where all are sound. Whole blocks.
std::optional<std::uint64_t> first_bad_block(TensorType type, std::span<const std::byte> blocks);

} // namespace modeld::quantize
