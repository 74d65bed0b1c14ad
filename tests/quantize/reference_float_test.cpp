// SPDX-License-Identifier: Apache-2.0
#include "quantize/kernels/row_codec.hpp"

#include "quantize/reference/half.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace modeld;
using namespace modeld::quantize;
using namespace modeld::quantize::reference;

TEST_CASE("f16_to_f32 and back is the identity for every pattern but NaN payloads",
          "[quantize][half]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (std::isnan(value)) {
      CHECK(f32_to_f16(value) == ((half & 0x8000U) | 0x7E00U));
    } else {
      REQUIRE(f32_to_f16(value) == half);
    }
  }
}

TEST_CASE("f32_to_f16 rounds to nearest, ties to even, at every boundary", "[quantize][half]") {
  for (std::uint16_t half = 0; half < 0x7BFF; ++half) {
    const float low = f16_to_f32(half);
    const float high = f16_to_f32(static_cast<std::uint16_t>(half + 1));
    const float middle = low + (high - low) / 2; // exact: one bit more than a half has
    const std::uint16_t even = (half & 1U) == 0 ? half : static_cast<std::uint16_t>(half + 1);
    REQUIRE(f32_to_f16(middle) == even);
    REQUIRE(f32_to_f16(std::nextafter(middle, 0.0F)) == half);
    REQUIRE(f32_to_f16(std::nextafter(middle, 1e30F)) == half + 1);
    REQUIRE(f32_to_f16(-middle) == (even | 0x8000U));
  }
  CHECK(f32_to_f16(65519.996F) == 0x7BFF);
  CHECK(f32_to_f16(65520.0F) == 0x7C00);
  CHECK(f32_to_f16(std::numeric_limits<float>::infinity()) == 0x7C00);
  CHECK(f32_to_f16(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(f32_to_f16(-0.0F) == 0x8000);
}

TEST_CASE("f32_to_bf16 rounds to nearest even and keeps NaN a quiet NaN", "[quantize][half]") {
  const auto from_bits = [](std::uint32_t bits) { return f32_to_bf16(std::bit_cast<float>(bits)); };
  CHECK(from_bits(0x3F808000) == 0x3F80); // tie, even below
  CHECK(from_bits(0x3F818000) == 0x3F82); // tie, even above
  CHECK(from_bits(0x3F808001) == 0x3F81);
  CHECK(from_bits(0x7F7FFFFF) == 0x7F80); // overflow to infinity
  CHECK(from_bits(0x7F800001) == 0x7FC0); // a signalling NaN whose payload is below
  CHECK(from_bits(0xFFFF0000) == 0xFFFF);
  CHECK(from_bits(0x80000001) == 0x8000);
  CHECK(from_bits(0x00008001) == 0x0001); // subnormals are kept
}

TEST_CASE("RowCodec of a float type writes rows one after the other at any address",
          "[quantize][row_codec]") {
  const std::vector<float> in{1.0F, -2.5F, 0.0F, 3.0e-5F, 65504.0F, -1.0e-8F};
  for (const TensorType type : {TensorType::f32, TensorType::f16, TensorType::bf16}) {
    const RowCodec& c = scalar_codec(type);
    REQUIRE(c.type == type);
    CHECK(c.importance_use == ImportanceUse::ignored);
    const std::size_t size = *tensor_bytes(type, in.size());
    std::vector<std::byte> blocks(size + 1);
    c.quantize(in.data(), 2, 3, nullptr, blocks.data() + 1);
    std::vector<float> out(in.size());
    c.dequantize(blocks.data() + 1, 3, 2, out.data());
    for (std::size_t i = 0; i < in.size(); ++i) {
      CHECK(out[i] == Approx(in[i]).epsilon(0.01).margin(1e-7));
    }
  }
}

TEST_CASE("scalar_codec has neither function for types that are not weights",
          "[quantize][row_codec]") {
  for (const TensorType type : {TensorType::i8, TensorType::i64, TensorType::q8_k}) {
    CHECK(scalar_codec(type).quantize == nullptr);
    CHECK(scalar_codec(type).dequantize == nullptr);
  }
}
