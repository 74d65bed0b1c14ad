// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/kernels/row_codec.hpp"
#include "schema/result.hpp"

#include <span>
#include <string_view>

// Which instruction set the kernels use. It is chosen once, above all loops; every target gives
// the same bytes, so the choice is about speed alone and is no part of a variant's key.

namespace modeld::quantize {

/// Worst first. `scalar` is the definition itself (quantize/reference/) and is always there.
enum class KernelTarget { scalar, neon, sve, avx2, avx512 };

/// As MODELD_KERNEL has it: "scalar", "neon", "sve", "avx2", "avx512".
std::string_view kernel_name(KernelTarget target);

/// What this program holds and this processor runs, best first; never empty, `scalar` last.
std::span<const KernelTarget> available_kernels();

/// The best one where `forced` is empty, else the one of that name. invalid_argument where there is
/// none of that name here; the message lists those that are.
Result<KernelTarget> choose_kernel(std::string_view forced);

/// choose_kernel(MODELD_KERNEL), read once in the life of the process. main() asks first, so that a
/// wrong name is reported before work starts.
const Result<KernelTarget>& kernel_in_use();

/// The codec of one target: its kernels where it has them, the scalar functions in other places.
/// `target` is one of available_kernels(). Lives for ever; any thread.
const RowCodec& codec_for(KernelTarget target, TensorType type);

} // namespace modeld::quantize
