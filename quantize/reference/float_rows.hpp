// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// F32, F16 and BF16 as row codecs (row_codec.hpp). Importance weights are ignored.

namespace modeld::quantize::reference {

void quantize_f32(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                  const float* importance, std::byte* out);
void dequantize_f32(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                    float* out);
void quantize_f16(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                  const float* importance, std::byte* out);
void dequantize_f16(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                    float* out);
void quantize_bf16(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                   const float* importance, std::byte* out);
void dequantize_bf16(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                     float* out);

} // namespace modeld::quantize::reference
