// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace modeld {

/// How a tensor's elements are stored in GGUF. The values are ggml's type ids and go to disk.
enum class TensorType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

struct TensorTypeInfo {
  TensorType type;
  std::string_view name; ///< as ggml prints it, upper case: "Q4_K"
  std::uint32_t block;   ///< elements in a block; a row is a whole number of blocks
  std::uint32_t bytes;   ///< bytes in a block
  bool quantized;        ///< needs general.quantization_version
};

/// Null for ids that are unknown, removed or not tensor data.
const TensorTypeInfo* find_tensor_type(std::uint32_t id);
/// Of a known type.
const TensorTypeInfo& info(TensorType type);
/// By name, in any case: "q4_k", "Q4_K", "BF16".
std::optional<TensorType> tensor_type_from_name(std::string_view name);
/// Every known type by ascending id.
std::span<const TensorTypeInfo> all_tensor_types();

/// Bytes of `elements` elements, where elements is a multiple of the block; nothing on overflow
/// or a broken block.
std::optional<std::uint64_t> tensor_bytes(TensorType type, std::uint64_t elements);

} // namespace modeld
