// SPDX-License-Identifier: Apache-2.0

// F16, BF16 and Q8_0: one pass at the speed of memory, so a vector has consecutive weights.
// Q8_0's only sum across weights is a maximum, which no order changes.

#include "quantize/kernels/table.hpp"
#include "quantize/reference/half.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantize/kernels/float.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "quantize/kernels/lanes-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace modeld::quantize::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

KernelFamily float_family() {
  return {HWY_TARGET, {}};
}

#else

using hwy::float16_t;
using Halves = hn::Rebind<std::uint16_t, Floats>;
using Float16s = hn::Rebind<float16_t, Floats>;
using Words = hn::RebindToUnsigned<Floats>;

void store_halves(hn::VFromD<Halves> value, std::byte* to) {
  hn::StoreU(hn::BitCast(hn::Repartition<std::uint8_t, Halves>{}, value),
             hn::Repartition<std::uint8_t, Halves>{}, reinterpret_cast<std::uint8_t*>(to));
}

hn::VFromD<Halves> load_halves(const std::byte* from) {
  const hn::Repartition<std::uint8_t, Halves> bytes;
  return hn::BitCast(Halves{}, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
}

/// Processors round as IEEE has it, but keep a NaN's payload; the definition makes it 0x7E00.
hn::VFromD<Halves> to_f16(FloatV value) {
  const auto converted = hn::BitCast(Halves{}, hn::DemoteTo(Float16s{}, value));
  if (HWY_LIKELY(hn::AllFalse(k_f, hn::IsNaN(value)))) return converted;
  const Words w;
  const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(w, value)), hn::Set(w, 0x8000));
  const auto quiet = hn::Or(sign, hn::Set(w, 0x7E00));
  const auto wide = hn::PromoteTo(w, converted);
  const auto is_nan = hn::RebindMask(w, hn::IsNaN(value));
  return hn::DemoteTo(Halves{}, hn::BitCast(k_i, hn::IfThenElse(is_nan, quiet, wide)));
}

hn::VFromD<Halves> to_bf16(FloatV value) {
  const Words w;
  const auto word = hn::BitCast(w, value);
  const auto upper = hn::ShiftRight<16>(word);
  const auto odd = hn::And(upper, hn::Set(w, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(word, hn::Add(odd, hn::Set(w, 0x7FFF))));
  const auto is_nan = hn::RebindMask(w, hn::IsNaN(value));
  const auto bits = hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(w, 0x40)), rounded);
  return hn::DemoteTo(Halves{}, hn::BitCast(k_i, bits));
}

/// Signalling NaNs as they are: the definition does not quiet them, F16C does.
FloatV from_f16(hn::VFromD<Halves> half) {
  const Words w;
  const auto wide = hn::PromoteTo(w, half);
  const auto value = hn::PromoteTo(k_f, hn::BitCast(Float16s{}, half));
  const auto is_nan = hn::IsNaN(value);
  if (HWY_LIKELY(hn::AllFalse(k_f, is_nan))) return value;
  float buffer[16];
  std::uint32_t source[16];
  hn::StoreU(wide, w, source);
  for (std::size_t i = 0; i < hn::Lanes(k_f); ++i) {
    buffer[i] = reference::f16_to_f32(static_cast<std::uint16_t>(source[i]));
  }
  return hn::LoadU(k_f, buffer);
}

FloatV from_bf16(hn::VFromD<Halves> half) {
  return hn::BitCast(k_f, hn::ShiftLeft<16>(hn::PromoteTo(Words{}, half)));
}

template <hn::VFromD<Halves> (*Convert)(FloatV), std::uint16_t (*One)(float)>
void to_halves(const float* in, std::uint64_t rows, std::uint64_t row_elements,
               const float* /*importance*/, std::byte* out) {
  const std::uint64_t count = rows * row_elements;
  std::uint64_t i = 0;
  for (; i + hn::Lanes(k_f) <= count; i += hn::Lanes(k_f)) {
    store_halves(Convert(hn::LoadU(k_f, in + i)), out + 2 * i);
  }
  for (; i < count; ++i)
    reference::store_u16(out + 2 * i, One(in[i]));
}

template <FloatV (*Convert)(hn::VFromD<Halves>), float (*One)(std::uint16_t)>
void from_halves(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements, float* out) {
  const std::uint64_t count = rows * row_elements;
  std::uint64_t i = 0;
  for (; i + hn::Lanes(k_f) <= count; i += hn::Lanes(k_f)) {
    hn::StoreU(Convert(load_halves(in + 2 * i)), k_f, out + i);
  }
  for (; i < count; ++i)
    out[i] = One(reference::load_u16(in + 2 * i));
}

KernelFamily float_family() {
  static constexpr std::array k_kernels{
      Kernel{TensorType::f16, to_halves<to_f16, reference::f32_to_f16>,
             from_halves<from_f16, reference::f16_to_f32>},
      Kernel{TensorType::bf16, to_halves<to_bf16, reference::f32_to_bf16>,
             from_halves<from_bf16, reference::bf16_to_f32>},
  };
  return {HWY_TARGET, k_kernels};
}

#endif

} // namespace
} // namespace modeld::quantize::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace modeld::quantize {
MODELD_KERNEL_FAMILY(float_kernels, float_family);
} // namespace modeld::quantize
#endif
