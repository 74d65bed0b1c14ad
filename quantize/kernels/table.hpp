// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/kernels/row_codec.hpp"
#include "quantize/kernels/target.hpp"

#include <cstdint>
#include <span>

// What the kernel files give to target.cpp. Private to those files.

// Targets not worth their compile time: processors with SSSE3 or SSE4 but no AVX2 are ten years
// old, and AVX3_DL and SVE2 add nothing that these kernels use. Highway always compiles its
// baseline too, on x86 a scalar one; there the families are empty, since quantize/reference/ is
// the scalar code. This header comes before Highway's.
#define HWY_DISABLED_TARGETS                                                                       \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE2 | HWY_SVE2_128 | HWY_SVE_256)

namespace modeld::quantize {

/// A null function is not there: the scalar one stands in.
struct Kernel {
  TensorType type;
  RowCodec::Quantize quantize;
  RowCodec::Dequantize dequantize;
};

/// The kernels of one file, compiled for one target.
struct KernelFamily {
  std::int64_t compiled_for = 0; ///< Highway's bit of the target that the compiler saw
  std::span<const Kernel> kernels;
};

/// `target`: one of Highway's bits that this machine supports.
using FindFamily = KernelFamily (*)(std::int64_t target);
KernelFamily block_values_kernels(std::int64_t target);
KernelFamily few_bits_kernels(std::int64_t target);
KernelFamily few_bits_values_kernels(std::int64_t target);
KernelFamily float_kernels(std::int64_t target);
KernelFamily grid_kernels(std::int64_t target);
KernelFamily grid_values_kernels(std::int64_t target);
KernelFamily iq1_kernels(std::int64_t target);
KernelFamily iq4_kernels(std::int64_t target);
KernelFamily legacy_kernels(std::int64_t target);
KernelFamily min_scale_kernels(std::int64_t target);
KernelFamily q3_k_kernels(std::int64_t target);
KernelFamily q6_k_kernels(std::int64_t target);
KernelFamily super_values_kernels(std::int64_t target);

/// All of the above.
std::span<const FindFamily> kernel_families();

/// Highway's bit; 0 for scalar.
std::int64_t target_bit(KernelTarget target);

} // namespace modeld::quantize

// Defines `KernelFamily finder(target)` from `KernelFamily family()`, which each target's namespace
// has. Stands in the HWY_ONCE part, in modeld::quantize.
#define MODELD_KERNEL_FAMILY(finder, family)                                                       \
  HWY_EXPORT(family);                                                                              \
  KernelFamily finder(std::int64_t target) {                                                       \
    hwy::ChosenTarget chosen;                                                                      \
    chosen.Update(target);                                                                         \
    constexpr std::size_t k_last = std::size(HWY_DISPATCH_TABLE(family)) - 1;                      \
    return HWY_DISPATCH_TABLE(family)[std::min(chosen.GetIndex(), k_last)]();                      \
  }                                                                                                \
  static_assert(true)
