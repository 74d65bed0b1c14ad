// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace modeld::quantize {

/// general.file_type: llama.cpp's numbers, which go to disk. They name recipes, and tell nothing
/// about a single tensor.
enum class FileType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q8_0 = 7,
  q5_0 = 8,
  q5_1 = 9,
  q2_k = 10,
  q3_k_s = 11,
  q3_k_m = 12,
  q3_k_l = 13,
  q4_k_s = 14,
  q4_k_m = 15,
  q5_k_s = 16,
  q5_k_m = 17,
  q6_k = 18,
  iq2_xxs = 19,
  iq2_xs = 20,
  q2_k_s = 21,
  iq3_xs = 22,
  iq3_xxs = 23,
  iq1_s = 24,
  iq4_nl = 25,
  iq3_s = 26,
  iq3_m = 27,
  iq2_s = 28,
  iq2_m = 29,
  iq4_xs = 30,
  iq1_m = 31,
  bf16 = 32,
  tq1_0 = 36,
  tq2_0 = 37,
  mxfp4_moe = 38,
  nvfp4 = 39,
  q1_0 = 40,
  q2_0 = 41,
};

/// Added where a file did not say, and the reference guessed from its tensors.
inline constexpr std::uint32_t k_file_type_guessed = 1024;

} // namespace modeld::quantize
