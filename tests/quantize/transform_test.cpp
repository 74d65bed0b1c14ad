// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/transform_view.hpp"

#include "quantize/convert/transform_encode.hpp"
#include "quantize/convert/transform_value.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>

using namespace modeld;
using namespace modeld::quantize;

namespace {

SourcePtr counting(Shape shape) {
  std::vector<float> values(element_count(shape));
  std::iota(values.begin(), values.end(), 0.0F);
  return owned_tensor(std::move(shape), std::move(values));
}

std::vector<float> all(const SourcePtr& tensor) {
  std::vector<float> out(tensor->elements());
  REQUIRE(read_f32(*tensor, 0, tensor->elements(), out.data()));
  // Any part read alone is the same part.
  for (std::uint64_t first = 0; first < out.size(); first += 3) {
    const std::uint64_t count = std::min<std::uint64_t>(5, out.size() - first);
    std::vector<float> part(count);
    REQUIRE(read_f32(*tensor, first, count, part.data()));
    CHECK(std::equal(part.begin(), part.end(), out.begin() + static_cast<std::ptrdiff_t>(first)));
  }
  return out;
}

} // namespace

TEST_CASE("rotary_halves orders query rows by heads and key rows by key heads",
          "[quantize][transform][A02]") {
  // 8 heads of size 8, 2 key heads; every row holds its own number.
  for (const std::int64_t heads : {8, 2}) {
    const auto rows = static_cast<std::uint64_t>(heads) * 8;
    std::vector<float> values;
    for (std::uint64_t r = 0; r < rows; ++r) {
      values.insert(values.end(), 3, static_cast<float>(r));
    }
    const auto out = rotary_halves(owned_tensor({rows, 3}, values), heads);
    REQUIRE(out);
    CHECK((*out)->shape() == Shape{rows, 3});
    const std::vector<float> got = all(*out);
    for (std::uint64_t r = 0; r < rows; ++r) {
      const std::uint64_t in_head = r % 8;
      const std::uint64_t expected = r / 8 * 8 + in_head / 2 + (in_head % 2) * 4;
      CHECK(got[r * 3] == static_cast<float>(expected));
    }
  }
  // A bias has one dimension.
  const auto bias = rotary_halves(counting({8}), 2);
  REQUIRE(bias);
  CHECK(all(*bias) == std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
  CHECK_FALSE(rotary_halves(counting({6}), 4));
  CHECK_FALSE(rotary_halves(counting({8}), 0));
}

TEST_CASE("views agree with each other and refuse what does not fit", "[quantize][transform]") {
  const SourcePtr t = counting({2, 3, 4});
  CHECK(all(*transpose(t, 0, 2))[1] == 12);
  CHECK(all(*permute(t, {1, 0, 2}))[4] == 12);
  CHECK(all(*slice(t, 1, 1, 3)) ==
        std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(all(*slice(t, -1, -1, 4)) == std::vector<float>{3, 7, 11, 15, 19, 23});
  CHECK((*reshape(t, {4, -1}))->shape() == Shape{4, 6});
  CHECK(all(*take(t, 1, {2, 0})) ==
        std::vector<float>{8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15});
  CHECK((*unsqueeze(t, 1))->shape() == Shape{2, 1, 3, 4});
  CHECK((*squeeze(*unsqueeze(t, 1)))->shape() == Shape{2, 3, 4});
  // A view of a view of a view.
  const auto deep = slice(*transpose(*reshape(*transpose(t, 1, 2), {8, 3}), 0, 1), 0, 1, 2);
  CHECK(all(*deep) == std::vector<float>{4, 5, 6, 7, 16, 17, 18, 19});
  CHECK_FALSE(reshape(t, {5, -1}));
  CHECK_FALSE(reshape(t, {-1, -1}));
  CHECK_FALSE(transpose(t, 0, 3));
  CHECK_FALSE(slice(t, 0, 1, 3));
  CHECK_FALSE(permute(t, {0, 0, 1}));
  CHECK_FALSE(take(t, 0, {2}));
}

TEST_CASE("concat and stack join along any dimension", "[quantize][transform]") {
  const SourcePtr a = counting({2, 2});
  const SourcePtr b = counting({2, 1});
  const std::vector<SourcePtr> both{a, b};
  CHECK(all(*concat(both, 1)) == std::vector<float>{0, 1, 0, 2, 3, 1});
  CHECK_FALSE(concat(both, 0));
  const std::vector<SourcePtr> same{a, a};
  CHECK((*stack(same))->shape() == Shape{2, 2, 2});
  CHECK(all(*concat(same, 0)) == std::vector<float>{0, 1, 2, 3, 0, 1, 2, 3});
}

TEST_CASE("values change as the reference's framework changes them", "[quantize][transform][A17]") {
  const SourcePtr zeros = owned_tensor({3}, {0, 0, 0});
  CHECK(all(add(zeros, 1)) == std::vector<float>{1, 1, 1});
  CHECK(all(negative_exp(zeros)) == std::vector<float>{-1, -1, -1});
  CHECK(all(multiply(counting({3}), 0.5F)) == std::vector<float>{0, 0.5F, 1});
  // F16 stays F16: 2049 is no F16 value.
  const SourcePtr half = as_f16(owned_tensor({1}, {2048}));
  CHECK(add(half, 1)->type() == ElementType::f16);
  CHECK(all(add(half, 1)) == std::vector<float>{2048});
}

TEST_CASE("to_f32 reads every 8-bit float by its definition", "[quantize][transform][A09]") {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::byte>(code);
    float value = 0;
    to_f32(ElementType::f8_e4m3, &byte, 1, &value);
    const int exponent = code >> 3 & 15;
    const int mantissa = code & 7;
    const double sign = code >= 128 ? -1 : 1;
    if (exponent == 15 && mantissa == 7) {
      CHECK(std::isnan(value));
    } else if (exponent == 0) {
      CHECK(value == sign * mantissa * std::ldexp(1.0, -9));
    } else {
      CHECK(value == sign * (1 + mantissa / 8.0) * std::ldexp(1.0, exponent - 7));
    }
    to_f32(ElementType::f8_e8m0, &byte, 1, &value);
    if (code == 255) {
      CHECK(std::isnan(value));
    } else {
      CHECK(value == std::ldexp(1.0, code - 127));
    }
  }
}

TEST_CASE("encode_tensor refuses a finite value that F16 cannot hold",
          "[quantize][transform][A16]") {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<std::byte> out(4);
  for (const auto& [value, fits] : {std::pair{65519.0F, true}, std::pair{70000.0F, false},
                                    std::pair{-70000.0F, false}, std::pair{infinity, true}}) {
    const SourcePtr source = owned_tensor({1, 2}, {1, value});
    const auto tensor = encode_tensor("t", source, TensorType::f16, Overflow::refuse);
    REQUIRE(tensor);
    CHECK(tensor->source->read_rows(0, 1, out).has_value() == fits);
    const auto forced = encode_tensor("t", source, TensorType::f16, Overflow::infinity);
    CHECK(forced->source->read_rows(0, 1, out));
  }
}

TEST_CASE("encode_tensor reverses dimensions and keeps equal types byte for byte",
          "[quantize][transform]") {
  const SourcePtr source = counting({2, 3});
  const auto tensor = encode_tensor("t", source, TensorType::f32, Overflow::refuse);
  REQUIRE(tensor);
  CHECK(tensor->ne == std::vector<std::uint64_t>{3, 2});
  std::vector<float> row(3);
  REQUIRE(tensor->source->read_rows(1, 1, std::as_writable_bytes(std::span(row))));
  CHECK(row == std::vector<float>{3, 4, 5});
}
