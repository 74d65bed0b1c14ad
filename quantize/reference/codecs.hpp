// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/kernels/row_codec.hpp"

// The scalar definition of every type that ggml_quantize_chunk can write. Plain loops in IEEE
// single precision and source order: the text of these files is what the kernels are held to.
// Layouts are in block_layout.hpp, the searches for scales in scale_search.hpp.

namespace modeld::quantize::reference {

extern const RowCodec f32_codec;
extern const RowCodec f16_codec;
extern const RowCodec bf16_codec;

extern const RowCodec q4_0_codec;
extern const RowCodec q4_1_codec;
extern const RowCodec q5_0_codec;
extern const RowCodec q5_1_codec;
extern const RowCodec q8_0_codec;

extern const RowCodec q2_k_codec;
extern const RowCodec q3_k_codec;
extern const RowCodec q4_k_codec;
extern const RowCodec q5_k_codec;
extern const RowCodec q6_k_codec;

extern const RowCodec iq4_nl_codec;
extern const RowCodec iq4_xs_codec;

extern const RowCodec iq2_xxs_codec;
extern const RowCodec iq2_xs_codec;
extern const RowCodec iq2_s_codec;
extern const RowCodec iq3_xxs_codec;
extern const RowCodec iq3_s_codec;
extern const RowCodec iq1_s_codec;
extern const RowCodec iq1_m_codec;

extern const RowCodec q1_0_codec;
extern const RowCodec q2_0_codec;
extern const RowCodec tq1_0_codec;
extern const RowCodec tq2_0_codec;

extern const RowCodec mxfp4_codec;
extern const RowCodec nvfp4_codec;

} // namespace modeld::quantize::reference
