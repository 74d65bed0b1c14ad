// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"

// Functions whose last bit the reference's framework (PyTorch on x86-64) decides: it takes them
// from vector libraries, which do not round to the nearest value. The same bits come out on every
// machine.

namespace modeld::quantize {

/// exp(x) as the framework has it on Intel processors with AVX-512, within 0.57 ulp of the truth.
/// NaN gives NaN; beyond the range of single precision infinity, or a denormal value, or zero.
float torch_exp(float x);

/// sin(x) and cos(x), likewise, for |x| up to 2^20: within 0.61 ulp. NaN and infinity give NaN.
float torch_sin(float x);
float torch_cos(float x);

/// The mean of |x| over a tensor, read once in order. The sum is the framework's: vectors of eight,
/// four of them side by side, in four levels. From 32768 elements on the framework gives each of
/// its threads a part; two threads are taken here, on every machine.
Result<float> torch_mean_magnitude(const SourceTensor& tensor);

} // namespace modeld::quantize
