// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"

#include <functional>
#include <vector>

// Transforms that compute. The arithmetic is the reference framework's: F16 tensors stay F16, each
// result rounded once; every other type becomes single precision first.

namespace modeld::quantize {

/// F16 as it is, everything else as single precision.
SourcePtr single_precision(const SourcePtr& tensor);
/// Single precision whatever it was.
SourcePtr as_f32(const SourcePtr& tensor);
/// Rounded to F16.
SourcePtr as_f16(const SourcePtr& tensor);

/// A function of every element alone.
using ElementFunction = float (*)(float x, float parameter);
SourcePtr each_element(const SourcePtr& tensor, ElementFunction function, float parameter);

SourcePtr add(const SourcePtr& tensor, float value);
SourcePtr multiply(const SourcePtr& tensor, float factor);
SourcePtr divide(const SourcePtr& tensor, float divisor);
/// -exp(x), as torch_math.hpp has it.
SourcePtr negative_exp(const SourcePtr& tensor);
SourcePtr negate(const SourcePtr& tensor);

/// A matrix divided by the Euclidean norms of its columns plus a little; single precision. The
/// first read reads the whole matrix to learn the norms.
Result<SourcePtr> divide_by_column_norms(const SourcePtr& tensor, float epsilon);
/// Ternary weights of BitNet: scaled by the mean magnitude, rounded to -1, 0, 1, scaled back.
/// The first read reads the whole tensor to learn the mean.
SourcePtr ternary(const SourcePtr& tensor);

/// Products element by element; `factors` is repeated: element i of the tensor goes with factor
/// (i / repeat) % size.
SourcePtr multiply_each(const SourcePtr& tensor, std::vector<float> factors, std::uint64_t repeat);

} // namespace modeld::quantize
