// SPDX-License-Identifier: Apache-2.0
#include "validate/block_scales.hpp"

#include "validate/data_bits.hpp"

#include <algorithm>

namespace modeld::validate {
namespace {

using T = TensorType;
using Bytes = std::span<const std::byte>;

constexpr std::array k_half_fields{
    HalfFields{T::q1_0, 1, {{{0, "d"}, {}}}},
    HalfFields{T::q2_0, 1, {{{0, "d"}, {}}}},
    HalfFields{T::q4_0, 1, {{{0, "d"}, {}}}},
    HalfFields{T::q5_0, 1, {{{0, "d"}, {}}}},
    HalfFields{T::q8_0, 1, {{{0, "d"}, {}}}},
    HalfFields{T::iq4_nl, 1, {{{0, "d"}, {}}}},
    HalfFields{T::q4_1, 2, {{{0, "d"}, {2, "m"}}}},
    HalfFields{T::q5_1, 2, {{{0, "d"}, {2, "m"}}}},
    HalfFields{T::q8_1, 2, {{{0, "d"}, {2, "s"}}}},
    HalfFields{T::q2_k, 2, {{{80, "d"}, {82, "dmin"}}}},
    HalfFields{T::q3_k, 1, {{{108, "d"}, {}}}},
    HalfFields{T::q4_k, 2, {{{0, "d"}, {2, "dmin"}}}},
    HalfFields{T::q5_k, 2, {{{0, "d"}, {2, "dmin"}}}},
    HalfFields{T::q6_k, 1, {{{208, "d"}, {}}}},
    HalfFields{T::iq1_s, 1, {{{0, "d"}, {}}}},
    HalfFields{T::iq2_xxs, 1, {{{0, "d"}, {}}}},
    HalfFields{T::iq2_xs, 1, {{{0, "d"}, {}}}},
    HalfFields{T::iq2_s, 1, {{{0, "d"}, {}}}},
    HalfFields{T::iq3_xxs, 1, {{{0, "d"}, {}}}},
    HalfFields{T::iq3_s, 1, {{{0, "d"}, {}}}},
    HalfFields{T::iq4_xs, 1, {{{0, "d"}, {}}}},
    HalfFields{T::tq1_0, 1, {{{52, "d"}, {}}}},
    HalfFields{T::tq2_0, 1, {{{64, "d"}, {}}}},
};

/// The first value of a plain type with all bits of the mask set.
template <class Value>
std::optional<std::uint64_t> first_all_ones(Bytes values, Value mask) {
  if (!any_all_ones<Value>(values, mask)) return std::nullopt;
  for (std::size_t i = 0; (i + 1) * sizeof(Value) <= values.size(); ++i) {
    if ((load_le<Value>(values.data() + i * sizeof(Value)) & mask) == mask) return i;
  }
  return std::nullopt;
}

template <class Test>
std::optional<std::uint64_t> first_where(Bytes blocks, std::size_t bytes, Test test) {
  for (std::uint64_t i = 0; (i + 1) * bytes <= blocks.size(); ++i) {
    if (test(blocks.data() + i * bytes)) return i;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> first_bad_half(Bytes blocks, std::size_t bytes,
                                            const HalfFields& fields) {
  const std::size_t first = fields.fields[0].offset;
  const std::size_t second = fields.count == 2 ? fields.fields[1].offset : first;
  return first_where(blocks, bytes, [first, second](const std::byte* block) {
    return is_bad_half(load_le<std::uint16_t>(block + first)) ||
           is_bad_half(load_le<std::uint16_t>(block + second));
  });
}

} // namespace

const HalfFields* half_fields(TensorType type) {
  const auto at = std::find_if(k_half_fields.begin(), k_half_fields.end(),
                               [type](const HalfFields& f) { return f.type == type; });
  return at == k_half_fields.end() ? nullptr : &*at;
}

std::uint16_t iq1_m_scale(const std::byte* block) {
  constexpr std::size_t k_scales = 48;
  const auto word = [&](std::size_t i) {
    return static_cast<unsigned>(load_le<std::uint16_t>(block + k_scales + 2 * i));
  };
  return static_cast<std::uint16_t>(word(0) >> 12 | (word(1) >> 8 & 0x00F0) |
                                    (word(2) >> 4 & 0x0F00) | (word(3) & 0xF000));
}

std::optional<std::uint64_t> first_bad_block(TensorType type, Bytes blocks) {
  const std::size_t bytes = info(type).bytes;
  if (const HalfFields* fields = half_fields(type)) return first_bad_half(blocks, bytes, *fields);
  switch (type) {
  case T::f32:
    return first_all_ones<std::uint32_t>(blocks, k_float_ones);
  case T::f16:
    return first_all_ones<std::uint16_t>(blocks, k_half_ones);
  case T::bf16:
    return first_all_ones<std::uint16_t>(blocks, k_bf16_ones);
  case T::f64:
    return first_all_ones<std::uint64_t>(blocks, k_double_ones);
  case T::q8_k:
    return first_where(blocks, bytes, [](const std::byte* block) {
      return (load_le<std::uint32_t>(block) & k_float_ones) == k_float_ones;
    });
  case T::iq1_m:
    return first_where(blocks, bytes,
                       [](const std::byte* block) { return is_bad_half(iq1_m_scale(block)); });
  case T::mxfp4:
    return first_where(blocks, bytes,
                       [](const std::byte* block) { return *block == std::byte{0xFF}; });
  default: // integers and NVFP4: every value is good
    return std::nullopt;
  }
}

} // namespace modeld::validate
