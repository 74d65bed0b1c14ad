// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/low_rank.hpp"

#include "quantize/convert/transform_value.hpp"
#include "quantize/convert/transform_view.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace modeld;
using namespace modeld::quantize;

namespace {

/// Small whole numbers, so that products and sums are exact.
SourcePtr numbers(Shape shape, int salt) {
  std::vector<float> values(element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<int>(i) * 7 + salt) % 11 - 5);
  }
  return owned_tensor(std::move(shape), std::move(values));
}

std::vector<float> read(const SourceTensor& tensor) {
  std::vector<float> out(tensor.elements());
  REQUIRE(read_f32(tensor, 0, out.size(), out.data()));
  return out;
}

/// B times A, for each of the matrices that stand in the dimensions before the last two.
SourcePtr product(const LowRank& pair) {
  const Shape& shape = pair.shape();
  const std::uint64_t rows = shape[shape.size() - 2];
  const std::uint64_t columns = shape.back();
  const std::uint64_t rank = pair.b()->shape().back();
  const auto a = read(*pair.a());
  const auto b = read(*pair.b());
  const std::uint64_t matrices = pair.elements() / (rows * columns);
  const bool shared = pair.a()->elements() == rank * columns;
  std::vector<float> out(pair.elements());
  for (std::uint64_t m = 0; m < matrices; ++m) {
    for (std::uint64_t r = 0; r < rows; ++r) {
      for (std::uint64_t c = 0; c < columns; ++c) {
        float sum = 0;
        for (std::uint64_t k = 0; k < rank; ++k) {
          sum += b[(m * rows + r) * rank + k] * a[((shared ? 0 : m) * rank + k) * columns + c];
        }
        out[(m * rows + r) * columns + c] = sum;
      }
    }
  }
  return owned_tensor(shape, std::move(out));
}

SourcePtr pair_of(std::uint64_t rows, std::uint64_t columns, std::uint64_t rank, int salt = 0) {
  return low_rank(numbers({rank, columns}, salt + 1), numbers({rows, rank}, salt + 3)).value();
}

void same(const Result<SourcePtr>& changed, const Result<SourcePtr>& expected) {
  REQUIRE(expected);
  if (!changed) FAIL(changed.error().message);
  const LowRank* pair = as_low_rank(**changed);
  REQUIRE(pair != nullptr);
  CHECK(pair->shape() == (*expected)->shape());
  CHECK(read(*product(*pair)) == read(**expected));
}

} // namespace

TEST_CASE("transforms of a low-rank change are those of its product", "[quantize][adapter]") {
  const SourcePtr tensor = pair_of(12, 8, 3);
  const LowRank& pair = *as_low_rank(*tensor);
  const SourcePtr whole = product(pair);
  const auto halves = [](const SourcePtr& t, std::int64_t n, std::int64_t) {
    return rotary_halves(t, n);
  };
  same(low_rank_rows(pair, halves, 3, 0), rotary_halves(whole, 3));
  same(low_rank_rows(pair, regroup_rows, 3, 2), regroup_rows(whole, 3, 2));
  same(low_rank_rows(pair, ungroup_qkv, 2, 1), ungroup_qkv(whole, 2, 1));
  same(low_rank_transpose(pair, 0, 1), transpose(whole, 0, 1));
  same(low_rank_slice(pair, 0, 2, 7), slice(whole, 0, 2, 7));
  same(low_rank_slice(pair, -1, 1, 5), slice(whole, -1, 1, 5));
  same(low_rank_take(pair, 0, {5, 0, 5}), take(whole, 0, {5, 0, 5}));
  same(low_rank_take(pair, 1, {7, 2}), take(whole, 1, {7, 2}));
  same(low_rank_reshape(pair, {3, -1, 8}), reshape(whole, {3, 4, 8}));
  same(low_rank_multiply(pair, 2.0F), multiply(whole, 2.0F));
  same(low_rank_multiply_rows(pair, {1.0F, 3.0F}, 16), multiply_each(whole, {1.0F, 3.0F}, 16));
}

TEST_CASE("a low-rank change follows reshapes and permutations of its rows",
          "[quantize][adapter]") {
  const SourcePtr tensor = pair_of(12, 8, 3);
  const SourcePtr whole = product(*as_low_rank(*tensor));
  const auto four = low_rank_reshape(*as_low_rank(*tensor), {3, 2, 2, 8});
  REQUIRE(four);
  const auto turned = low_rank_permute(*as_low_rank(**four), {0, 2, 1, 3});
  REQUIRE(turned);
  const auto expected = permute(reshape(whole, {3, 2, 2, 8}).value(), {0, 2, 1, 3}).value();
  same(turned, expected);
  same(low_rank_slice(*as_low_rank(**turned), 1, 0, 1), slice(expected, 1, 0, 1));
  CHECK_FALSE(low_rank_transpose(*as_low_rank(**turned), -1, -2));
  same(low_rank_reshape(*as_low_rank(**turned), {12, 8}), reshape(expected, {12, 8}));
}

TEST_CASE("low-rank changes of experts stack, those of joined rows share A",
          "[quantize][adapter]") {
  const std::vector<SourcePtr> experts{pair_of(4, 8, 2), pair_of(4, 8, 2, 5)};
  std::vector<SourcePtr> wholes;
  for (const SourcePtr& expert : experts) {
    wholes.push_back(product(*as_low_rank(*expert)));
  }
  same(stack_parts(experts), stack(wholes));

  const SourcePtr a = numbers({2, 8}, 1);
  const std::vector<SourcePtr> parts{low_rank(a, numbers({4, 2}, 2)).value(),
                                     low_rank(a, numbers({6, 2}, 9)).value()};
  const std::vector<SourcePtr> plain{product(*as_low_rank(*parts[0])),
                                     product(*as_low_rank(*parts[1]))};
  same(concat_parts(parts, 0), concat(plain, 0));
  CHECK_FALSE(concat_parts(parts, 1));
  CHECK_FALSE(concat_parts(experts, 0));
}

TEST_CASE("low_rank refuses factors that do not fit, and what is no pair any more",
          "[quantize][adapter]") {
  CHECK(low_rank(numbers({3, 8}, 0), numbers({12, 4}, 0)).error().code == Errc::malformed);
  CHECK_FALSE(low_rank(numbers({8}, 0), numbers({12}, 0)));
  const SourcePtr tensor = pair_of(12, 8, 3);
  const LowRank& pair = *as_low_rank(*tensor);
  CHECK_FALSE(low_rank_reshape(pair, {8, 12}));
  CHECK_FALSE(low_rank_reshape(pair, {96}));
  CHECK_FALSE(low_rank_permute(pair, {0}));
  CHECK_FALSE(low_rank_multiply_rows(pair, {1.0F}, 4));
  std::vector<float> out(8);
  CHECK_FALSE(tensor->read(0, 8, reinterpret_cast<std::byte*>(out.data())));
}

TEST_CASE("factors of two types become single precision", "[quantize][adapter]") {
  const SourcePtr half = as_f16(numbers({3, 8}, 0));
  const auto mixed = low_rank(half, numbers({12, 3}, 1));
  REQUIRE(mixed);
  CHECK(as_low_rank(**mixed)->a()->type() == ElementType::f32);
  const auto halves = low_rank(half, as_f16(numbers({12, 3}, 1)));
  REQUIRE(halves);
  CHECK((*halves)->type() == ElementType::f16);
}
