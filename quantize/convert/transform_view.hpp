// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"

#include <cstdint>
#include <span>
#include <vector>

// Transforms that move elements and change none. They work in any element type, name for name as
// the frameworks do; an error says which dimensions do not fit.

namespace modeld::quantize {

/// The same elements in order under another shape; one dimension may be -1.
Result<SourcePtr> reshape(const SourcePtr& tensor, std::vector<std::int64_t> shape);
/// Dimensions in another order: axes[i] is the old place of the new dimension i.
Result<SourcePtr> permute(const SourcePtr& tensor, const std::vector<std::int64_t>& axes);
/// Two dimensions exchanged; negative ones count from the end.
Result<SourcePtr> transpose(const SourcePtr& tensor, std::int64_t a, std::int64_t b);
/// [begin, end) of one dimension; negative bounds count from the end.
Result<SourcePtr> slice(const SourcePtr& tensor, std::int64_t axis, std::int64_t begin,
                        std::int64_t end);
/// Some places of one dimension, in the order given.
Result<SourcePtr> take(const SourcePtr& tensor, std::int64_t axis,
                       std::vector<std::uint64_t> places);
/// Dimensions of one element removed, or one inserted.
Result<SourcePtr> squeeze(const SourcePtr& tensor);
Result<SourcePtr> squeeze(const SourcePtr& tensor, std::int64_t axis);
Result<SourcePtr> unsqueeze(const SourcePtr& tensor, std::int64_t axis);
/// One after the other along a dimension; all other dimensions equal. Parts of different types
/// become single precision.
Result<SourcePtr> concat(std::span<const SourcePtr> parts, std::int64_t axis);
/// A new first dimension over parts of one shape.
Result<SourcePtr> stack(std::span<const SourcePtr> parts);
/// The rows of each head, stored as two halves of a rotary pair, interleaved: undoes what
/// checkpoints of the Hugging Face form did to the original weights. `heads` divides the rows into
/// even parts (failure case A02).
Result<SourcePtr> rotary_halves(const SourcePtr& tensor, std::int64_t heads);

/// The first dimension seen as a x b x rest, the first two exchanged: parts that stand together for
/// each head come to stand together for each kind.
Result<SourcePtr> regroup_rows(const SourcePtr& tensor, std::int64_t a, std::int64_t b);
/// Queries, keys and values that stand together for each key-value head (queries of the head, then
/// its key, then its value), sorted into all queries, all keys, all values.
Result<SourcePtr> ungroup_qkv(const SourcePtr& tensor, std::int64_t heads, std::int64_t kv_heads);

/// A dimension given as Python does, in [0, rank).
Result<std::size_t> axis_of(const SourceTensor& tensor, std::int64_t axis, std::size_t extra = 0);

} // namespace modeld::quantize
