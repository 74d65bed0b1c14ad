// SPDX-License-Identifier: Apache-2.0

// Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: blocks of 32 with a binary16 scale. Layouts:
// quantize/reference/.

#include "quantize/kernels/table.hpp"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/legacy.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/legacy_importance-inl.hpp"
#include "quantize/kernels/legacy_plain-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily legacy_family() {
  return {HWY_TARGET, {}};
}

#else

template <class Type>
void quantize(const float* in, std::uint64_t rows, std::uint64_t row_elements,
              const float* importance, std::byte* out) {
  auto* const to = reinterpret_cast<std::uint8_t*>(out);
  if constexpr (!std::is_same_v<Type, Q80>) {
    if (importance != nullptr) {
      quantize_weighted<Type>(in, rows, row_elements, importance, to);
      return;
    }
  }
  quantize_plain<Type>(in, rows * row_elements / k_block, to);
}

KernelFamily legacy_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::q4_0, quantize<Q40>, nullptr},
      Kernel{TensorType::q4_1, quantize<Q41>, nullptr},
      Kernel{TensorType::q5_0, quantize<Q50>, nullptr},
      Kernel{TensorType::q5_1, quantize<Q51>, nullptr},
      Kernel{TensorType::q8_0, quantize<Q80>, nullptr},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(legacy_kernels, legacy_family);
} // namespace modeld::quantize
#endif
