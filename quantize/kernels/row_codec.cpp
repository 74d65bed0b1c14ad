// SPDX-License-Identifier: Apache-2.0
#include "quantize/kernels/row_codec.hpp"

#include "quantize/kernels/target.hpp"
#include "quantize/reference/codecs.hpp"

#include <algorithm>
#include <array>

namespace modeld::quantize {
namespace {

constexpr std::array k_scalar{
    &reference::f32_codec,     &reference::f16_codec,    &reference::bf16_codec,
    &reference::q4_0_codec,    &reference::q4_1_codec,   &reference::q5_0_codec,
    &reference::q5_1_codec,    &reference::q8_0_codec,   &reference::q2_k_codec,
    &reference::q3_k_codec,    &reference::q4_k_codec,   &reference::q5_k_codec,
    &reference::q6_k_codec,    &reference::iq4_nl_codec, &reference::iq4_xs_codec,
    &reference::q1_0_codec,    &reference::q2_0_codec,   &reference::tq1_0_codec,
    &reference::tq2_0_codec,   &reference::mxfp4_codec,  &reference::nvfp4_codec,
    &reference::iq2_xxs_codec, &reference::iq2_xs_codec, &reference::iq2_s_codec,
    &reference::iq3_xxs_codec, &reference::iq3_s_codec,  &reference::iq1_s_codec,
    &reference::iq1_m_codec,
};

// Types that are stored but are never weights.
constexpr RowCodec k_none{};

} // namespace

const RowCodec& scalar_codec(TensorType type) {
  const auto* at = std::find_if(k_scalar.begin(), k_scalar.end(),
                                [type](const RowCodec* c) { return c->type == type; });
  return at == k_scalar.end() ? k_none : **at;
}

const RowCodec& codec(TensorType type) {
  // main() has reported a wrong MODELD_KERNEL; the bytes are the same in any case.
  return codec_for(kernel_in_use().value_or(KernelTarget::scalar), type);
}

} // namespace modeld::quantize
