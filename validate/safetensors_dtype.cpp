// SPDX-License-Identifier: Apache-2.0
#include "validate/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace modeld::validate {
namespace {

using D = SafetensorsDtype;

// Names, widths and releases: validation.md 1.4.
constexpr std::array<SafetensorsDtypeInfo, 22> k_dtypes{{
    {D::boolean, "BOOL", 8, ""},
    {D::u8, "U8", 8, ""},
    {D::i8, "I8", 8, ""},
    {D::f8_e5m2, "F8_E5M2", 8, ""},
    {D::f8_e4m3, "F8_E4M3", 8, ""},
    {D::f8_e8m0, "F8_E8M0", 8, "0.6.0"},
    {D::f8_e4m3fnuz, "F8_E4M3FNUZ", 8, "0.8.0"},
    {D::f8_e5m2fnuz, "F8_E5M2FNUZ", 8, "0.8.0"},
    {D::f4, "F4", 4, "0.6.0"},
    {D::f6_e2m3, "F6_E2M3", 6, "0.6.0"},
    {D::f6_e3m2, "F6_E3M2", 6, "0.6.0"},
    {D::i16, "I16", 16, ""},
    {D::u16, "U16", 16, ""},
    {D::f16, "F16", 16, ""},
    {D::bf16, "BF16", 16, ""},
    {D::i32, "I32", 32, ""},
    {D::u32, "U32", 32, ""},
    {D::f32, "F32", 32, ""},
    {D::c64, "C64", 64, "0.7.0"},
    {D::i64, "I64", 64, ""},
    {D::u64, "U64", 64, ""},
    {D::f64, "F64", 64, ""},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < k_dtypes.size(); ++i)
    if (static_cast<std::size_t>(k_dtypes[i].dtype) != i) return false;
  return true;
}
static_assert(in_order(), "info() looks up by position");

} // namespace

const SafetensorsDtypeInfo& info(SafetensorsDtype dtype) {
  return k_dtypes[static_cast<std::size_t>(dtype)];
}

const SafetensorsDtypeInfo* find_safetensors_dtype(std::string_view name) {
  const auto* at = std::find_if(k_dtypes.begin(), k_dtypes.end(),
                                [&](const SafetensorsDtypeInfo& row) { return row.name == name; });
  return at == k_dtypes.end() ? nullptr : at;
}

std::span<const SafetensorsDtypeInfo> all_safetensors_dtypes() {
  return k_dtypes;
}

} // namespace modeld::validate
