// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace modeld::quantize {

/// Where the reference's result would be wrong without a word.
enum class OnBadResult {
  refuse,    ///< an error that names the place, or the better result that quantize_model reports
  reference, ///< what the reference writes (--force)
};

/// Rows of `from` in another type. `importance`: null, or ne[0] * ne[2] weights; each expert's rows
/// see their own part. Every row is checked on the way in and out; errors name row and element:
/// - malformed: a source value that is no number;
/// - unsupported: a value or scale beyond what the type can hold;
/// - unsupported, unless OnBadResult::reference: an all-zero run of 32 in a block of IQ3_S, behind
///   which the reference puts everything in the wrong place.
/// Blocks whose weights are all zero are quantized as without weights (failure case B04), unless
/// OnBadResult::reference.
std::shared_ptr<const TensorSource>
quantized_source(const GgufTensor& from, TensorType to,
                 std::shared_ptr<const std::vector<float>> importance, OnBadResult on_bad);

/// The rows of `from` as they are, checked likewise.
std::shared_ptr<const TensorSource> checked_source(const GgufTensor& from);

/// Blocks of `type` whose weights are all zero, by their first column.
std::vector<std::uint64_t> zero_weighted_blocks(TensorType type,
                                                const std::vector<float>& importance);

} // namespace modeld::quantize
