// SPDX-License-Identifier: Apache-2.0
#include "quantize/reference/codecs.hpp"
#include "quantize/reference/half.hpp"

// F32, F16 and BF16: one element is a block. Importance weights are ignored.

namespace modeld::quantize::reference {
namespace {

template <std::uint16_t (*Convert)(float)>
void to_halves(const float* in, std::uint64_t count, std::byte* out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    store_u16(out + 2 * i, Convert(in[i]));
  }
}

template <float (*Convert)(std::uint16_t)>
void from_halves(const std::byte* in, std::uint64_t count, float* out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    out[i] = Convert(load_u16(in + 2 * i));
  }
}

void quantize_f32(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                  const float* /*importance*/, std::byte* out) {
  std::memcpy(out, in, rows * row_elements * sizeof(float));
}

void dequantize_f32(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                    float* out) {
  std::memcpy(out, in, rows * row_elements * sizeof(float));
}

void quantize_f16(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                  const float* /*importance*/, std::byte* out) {
  to_halves<f32_to_f16>(in, rows * row_elements, out);
}

void dequantize_f16(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                    float* out) {
  from_halves<f16_to_f32>(in, rows * row_elements, out);
}

void quantize_bf16(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                   const float* /*importance*/, std::byte* out) {
  to_halves<f32_to_bf16>(in, rows * row_elements, out);
}

void dequantize_bf16(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                     float* out) {
  from_halves<bf16_to_f32>(in, rows * row_elements, out);
}

} // namespace

const RowCodec f32_codec{TensorType::f32, ImportanceUse::ignored, quantize_f32, dequantize_f32};
const RowCodec f16_codec{TensorType::f16, ImportanceUse::ignored, quantize_f16, dequantize_f16};
const RowCodec bf16_codec{TensorType::bf16, ImportanceUse::ignored, quantize_bf16, dequantize_bf16};

} // namespace modeld::quantize::reference
