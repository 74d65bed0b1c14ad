// SPDX-License-Identifier: Apache-2.0
#include "schema/tensor_type.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace modeld {
namespace {

// specs/validation.md section 2.7. Q8_1 and Q8_K are intermediates that are never weights.
constexpr std::array k_types{
    TensorTypeInfo{TensorType::f32, "F32", 1, 4, false},
    TensorTypeInfo{TensorType::f16, "F16", 1, 2, false},
    TensorTypeInfo{TensorType::q4_0, "Q4_0", 32, 18, true},
    TensorTypeInfo{TensorType::q4_1, "Q4_1", 32, 20, true},
    TensorTypeInfo{TensorType::q5_0, "Q5_0", 32, 22, true},
    TensorTypeInfo{TensorType::q5_1, "Q5_1", 32, 24, true},
    TensorTypeInfo{TensorType::q8_0, "Q8_0", 32, 34, true},
    TensorTypeInfo{TensorType::q8_1, "Q8_1", 32, 36, true},
    TensorTypeInfo{TensorType::q2_k, "Q2_K", 256, 84, true},
    TensorTypeInfo{TensorType::q3_k, "Q3_K", 256, 110, true},
    TensorTypeInfo{TensorType::q4_k, "Q4_K", 256, 144, true},
    TensorTypeInfo{TensorType::q5_k, "Q5_K", 256, 176, true},
    TensorTypeInfo{TensorType::q6_k, "Q6_K", 256, 210, true},
    TensorTypeInfo{TensorType::q8_k, "Q8_K", 256, 292, true},
    TensorTypeInfo{TensorType::iq2_xxs, "IQ2_XXS", 256, 66, true},
    TensorTypeInfo{TensorType::iq2_xs, "IQ2_XS", 256, 74, true},
    TensorTypeInfo{TensorType::iq3_xxs, "IQ3_XXS", 256, 98, true},
    TensorTypeInfo{TensorType::iq1_s, "IQ1_S", 256, 50, true},
    TensorTypeInfo{TensorType::iq4_nl, "IQ4_NL", 32, 18, true},
    TensorTypeInfo{TensorType::iq3_s, "IQ3_S", 256, 110, true},
    TensorTypeInfo{TensorType::iq2_s, "IQ2_S", 256, 82, true},
    TensorTypeInfo{TensorType::iq4_xs, "IQ4_XS", 256, 136, true},
    TensorTypeInfo{TensorType::i8, "I8", 1, 1, false},
    TensorTypeInfo{TensorType::i16, "I16", 1, 2, false},
    TensorTypeInfo{TensorType::i32, "I32", 1, 4, false},
    TensorTypeInfo{TensorType::i64, "I64", 1, 8, false},
    TensorTypeInfo{TensorType::f64, "F64", 1, 8, false},
    TensorTypeInfo{TensorType::iq1_m, "IQ1_M", 256, 56, true},
    TensorTypeInfo{TensorType::bf16, "BF16", 1, 2, false},
    TensorTypeInfo{TensorType::tq1_0, "TQ1_0", 256, 54, true},
    TensorTypeInfo{TensorType::tq2_0, "TQ2_0", 256, 66, true},
    TensorTypeInfo{TensorType::mxfp4, "MXFP4", 32, 17, true},
    TensorTypeInfo{TensorType::nvfp4, "NVFP4", 64, 36, true},
    TensorTypeInfo{TensorType::q1_0, "Q1_0", 128, 18, true},
    TensorTypeInfo{TensorType::q2_0, "Q2_0", 64, 18, true},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::toupper(x) == std::toupper(y);
  });
}

} // namespace

const TensorTypeInfo* find_tensor_type(std::uint32_t id) {
  const auto at = std::find_if(k_types.begin(), k_types.end(), [id](const TensorTypeInfo& t) {
    return static_cast<std::uint32_t>(t.type) == id;
  });
  return at == k_types.end() ? nullptr : &*at;
}

const TensorTypeInfo& info(TensorType type) {
  return *find_tensor_type(static_cast<std::uint32_t>(type));
}

std::optional<TensorType> tensor_type_from_name(std::string_view name) {
  for (const TensorTypeInfo& row : k_types) {
    if (equal_ignoring_case(row.name, name)) return row.type;
  }
  return std::nullopt;
}

std::span<const TensorTypeInfo> all_tensor_types() {
  return k_types;
}

std::optional<std::uint64_t> tensor_bytes(TensorType type, std::uint64_t elements) {
  const TensorTypeInfo& row = info(type);
  std::uint64_t bytes = 0;
  if (elements % row.block != 0) return std::nullopt;
  if (__builtin_mul_overflow(elements / row.block, std::uint64_t{row.bytes}, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

} // namespace modeld
