// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf_model.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace modeld::quantize {

/// Rows of `from` in another type. `importance`: empty, or ne[0] * ne[2] weights that live as long
/// as the source; each expert's rows see their own part. Every row is checked on the way in and
/// out: a value that is no number, or a block whose scale is none, is an error (malformed on the
/// way in, unsupported on the way out) that names row and element.
std::shared_ptr<const TensorSource>
quantized_source(const GgufTensor& from, TensorType to,
                 std::shared_ptr<const std::vector<float>> importance);

/// The rows of `from` as they are, checked likewise.
std::shared_ptr<const TensorSource> checked_source(const GgufTensor& from);

} // namespace modeld::quantize
