// SPDX-License-Identifier: Apache-2.0
#include "quantize/row_codec.hpp"

#include "quantize/reference/float_rows.hpp"

#include <algorithm>
#include <array>

namespace modeld::quantize {
namespace {

using enum TensorType;
using enum ImportanceUse;

constexpr std::array k_scalar{
    RowCodec{f32, ignored, reference::quantize_f32, reference::dequantize_f32},
    RowCodec{f16, ignored, reference::quantize_f16, reference::dequantize_f16},
    RowCodec{bf16, ignored, reference::quantize_bf16, reference::dequantize_bf16},
};

// Types that are stored but are never weights.
constexpr RowCodec k_none{};

} // namespace

const RowCodec& scalar_codec(TensorType type) {
  const auto* at = std::find_if(k_scalar.begin(), k_scalar.end(),
                                [type](const RowCodec& c) { return c.type == type; });
  return at == k_scalar.end() ? k_none : *at;
}

const RowCodec& codec(TensorType type) {
  return scalar_codec(type);
}

} // namespace modeld::quantize
