// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"

#include <cstdint>
#include <span>
#include <vector>

// The change that a LoRA adapter makes to a weight: B times A, never multiplied out. What a family
// does to the weight is done to the factors: what moves rows to B, what moves columns to A.

namespace modeld::quantize {

/// Shape and type are those of the product; only the factors can be read.
class LowRank final : public SourceTensor {
public:
  LowRank(SourcePtr a, SourcePtr b);

  const SourcePtr& a() const { return a_; } ///< [..., rank, columns]
  const SourcePtr& b() const { return b_; } ///< [..., rows, rank]

  /// internal: nothing may ask for it.
  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override;

private:
  SourcePtr a_;
  SourcePtr b_;
};

/// Two factors whose ranks are equal; of two types, both become single precision. malformed where
/// they do not fit together.
Result<SourcePtr> low_rank(SourcePtr a, SourcePtr b);
/// Null where the tensor is none.
const LowRank* as_low_rank(const SourceTensor& tensor);

// The transforms of transform_view.hpp and transform_value.hpp, for a pair. unsupported where the
// result is no pair.

Result<SourcePtr> low_rank_reshape(const LowRank& pair, std::vector<std::int64_t> shape);
Result<SourcePtr> low_rank_permute(const LowRank& pair, const std::vector<std::int64_t>& axes);
Result<SourcePtr> low_rank_transpose(const LowRank& pair, std::int64_t a, std::int64_t b);
Result<SourcePtr> low_rank_slice(const LowRank& pair, std::int64_t axis, std::int64_t begin,
                                 std::int64_t end);
Result<SourcePtr> low_rank_take(const LowRank& pair, std::int64_t axis,
                                std::vector<std::uint64_t> places);
/// A transform of rows in a matrix.
Result<SourcePtr> low_rank_rows(const LowRank& pair,
                                Result<SourcePtr> (*transform)(const SourcePtr&, std::int64_t,
                                                               std::int64_t),
                                std::int64_t first, std::int64_t second);
Result<SourcePtr> low_rank_multiply(const LowRank& pair, float factor);
/// One factor for each row, repeated: row i goes with factor i % size.
Result<SourcePtr> low_rank_multiply_rows(const LowRank& pair, std::vector<float> factors,
                                         std::uint64_t repeat);

/// stack() and concat() of pairs or of plain tensors. Pairs joined along their rows must share A.
Result<SourcePtr> stack_parts(std::span<const SourcePtr> parts);
Result<SourcePtr> concat_parts(std::span<const SourcePtr> parts, std::int64_t axis);

} // namespace modeld::quantize
