// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"

#include <cstdint>

namespace modeld::quantize {

/// Positions of an audio tower, [length, channels]: sines of falling frequencies, then cosines, as
/// Whisper has them. Single precision, as the reference's framework computes it (torch_math.hpp).
///
/// unsupported: an odd number of channels, fewer than four of them, or sizes that no tower has.
Result<SourcePtr> sinusoids(std::int64_t length, std::int64_t channels);

} // namespace modeld::quantize
