// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace modeld::quantize {

/// base ^ (2 i / dim) for i = 0 .. dim/2 - 1, in single precision: `base` is positive and finite,
/// `dim` positive. The values are those of the reference's framework (PyTorch with AVX-512): groups
/// of 32 come from its vector library and may be 1 ulp off the nearest value, the rest from the C
/// library's powf.
std::vector<float> torch_rotary_powers(float base, int dim);

} // namespace modeld::quantize
