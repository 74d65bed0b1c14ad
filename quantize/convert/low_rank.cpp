// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/low_rank.hpp"

#include "quantize/convert/transform_value.hpp"
#include "quantize/convert/transform_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace modeld::quantize {
namespace {

Shape product_shape(const SourceTensor& a, const SourceTensor& b) {
  Shape shape = b.shape();
  shape.back() = a.shape().back();
  return shape;
}

tl::unexpected<Error> no_pair(std::string_view what, const LowRank& pair) {
  return fail(Errc::unsupported,
              fmt::format("cannot {} the low-rank change of a weight of shape [{}]", what,
                          fmt::join(pair.shape(), ", ")));
}

std::uint64_t rank_of(const LowRank& pair) {
  return pair.b()->shape().back();
}

/// Whether A is one matrix, whatever dimensions of one element stand before it.
bool single_matrix(const SourceTensor& a) {
  return std::all_of(a.shape().begin(), a.shape().end() - 2,
                     [](std::uint64_t n) { return n == 1; });
}

/// Both factors, or only the one that a dimension belongs to.
template <class Transform>
Result<SourcePtr> along(const LowRank& pair, std::int64_t axis, Transform transform) {
  MODELD_ASSIGN(const std::size_t place, axis_of(pair, axis));
  const auto at = static_cast<std::int64_t>(place);
  SourcePtr a = pair.a();
  SourcePtr b = pair.b();
  const bool columns = place + 1 == pair.shape().size();
  const bool rows = place + 2 == pair.shape().size();
  if (!columns) {
    MODELD_ASSIGN(b, transform(b, at));
  }
  if (columns || (!rows && a->shape()[place] != 1)) {
    MODELD_ASSIGN(a, transform(a, at));
  }
  return low_rank(std::move(a), std::move(b));
}

} // namespace

LowRank::LowRank(SourcePtr a, SourcePtr b)
    : SourceTensor(a->type(), product_shape(*a, *b)), a_(std::move(a)), b_(std::move(b)) {}

Result<void> LowRank::read(std::uint64_t, std::uint64_t, std::byte*) const {
  return fail(Errc::internal, "reading a low-rank change: it is never multiplied out");
}

Result<SourcePtr> low_rank(SourcePtr a, SourcePtr b) {
  const Shape& left = b->shape();
  const Shape& right = a->shape();
  if (left.size() < 2 || right.size() != left.size() || right[right.size() - 2] != left.back()) {
    return fail(Errc::malformed,
                fmt::format("the factors do not fit: A has shape [{}], B has shape [{}], expected "
                            "[rank, columns] and [rows, rank]",
                            fmt::join(right, ", "), fmt::join(left, ", ")));
  }
  if (a->type() != b->type()) {
    a = as_f32(a);
    b = as_f32(b);
  }
  return std::make_shared<LowRank>(std::move(a), std::move(b));
}

const LowRank* as_low_rank(const SourceTensor& tensor) {
  return dynamic_cast<const LowRank*>(&tensor);
}

Result<SourcePtr> low_rank_reshape(const LowRank& pair, std::vector<std::int64_t> shape) {
  // One dimension may be left to compute.
  std::int64_t known = 1;
  for (const std::int64_t n : shape) {
    if (n > 0 && __builtin_mul_overflow(known, n, &known)) return no_pair("reshape", pair);
  }
  for (std::int64_t& n : shape) {
    if (n == -1 && known != 0) n = static_cast<std::int64_t>(pair.elements()) / known;
  }
  const auto columns = static_cast<std::int64_t>(pair.shape().back());
  if (shape.size() < 2 || shape.back() != columns || !single_matrix(*pair.a())) {
    return no_pair("reshape", pair);
  }
  const auto rank = static_cast<std::int64_t>(rank_of(pair));
  std::vector<std::int64_t> left = shape;
  left.back() = rank;
  std::vector<std::int64_t> right(shape.size(), 1);
  right[right.size() - 2] = rank;
  right.back() = columns;
  MODELD_ASSIGN(SourcePtr b, reshape(pair.b(), std::move(left)));
  MODELD_ASSIGN(SourcePtr a, reshape(pair.a(), std::move(right)));
  return low_rank(std::move(a), std::move(b));
}

Result<SourcePtr> low_rank_permute(const LowRank& pair, const std::vector<std::int64_t>& axes) {
  const auto size = static_cast<std::int64_t>(pair.shape().size());
  if (static_cast<std::int64_t>(axes.size()) != size) return no_pair("permute", pair);
  if (axes.back() == size - 1 && single_matrix(*pair.a())) {
    MODELD_ASSIGN(SourcePtr b, permute(pair.b(), axes));
    return low_rank(pair.a(), std::move(b));
  }
  // The last two exchanged, all others where they were.
  std::vector<std::int64_t> exchanged(axes.size());
  for (std::size_t i = 0; i < exchanged.size(); ++i) {
    exchanged[i] = static_cast<std::int64_t>(i);
  }
  std::swap(exchanged[exchanged.size() - 1], exchanged[exchanged.size() - 2]);
  if (axes == exchanged) return low_rank_transpose(pair, -1, -2);
  return no_pair("permute", pair);
}

Result<SourcePtr> low_rank_transpose(const LowRank& pair, std::int64_t a, std::int64_t b) {
  MODELD_ASSIGN(const std::size_t first, axis_of(pair, a));
  MODELD_ASSIGN(const std::size_t second, axis_of(pair, b));
  const std::size_t size = pair.shape().size();
  if (first == second || first + second != 2 * size - 3) return no_pair("transpose", pair);
  // One A for many B: they would have to change places with each other.
  const Shape& left_shape = pair.b()->shape();
  const Shape& right_shape = pair.a()->shape();
  if (!std::equal(left_shape.begin(), left_shape.end() - 2, right_shape.begin())) {
    return no_pair("transpose", pair);
  }
  MODELD_ASSIGN(SourcePtr left, transpose(pair.b(), -1, -2));
  MODELD_ASSIGN(SourcePtr right, transpose(pair.a(), -1, -2));
  return low_rank(std::move(left), std::move(right));
}

Result<SourcePtr> low_rank_slice(const LowRank& pair, std::int64_t axis, std::int64_t begin,
                                 std::int64_t end) {
  return along(pair, axis, [begin, end](const SourcePtr& factor, std::int64_t at) {
    return slice(factor, at, begin, end);
  });
}

Result<SourcePtr> low_rank_take(const LowRank& pair, std::int64_t axis,
                                std::vector<std::uint64_t> places) {
  return along(pair, axis, [&places](const SourcePtr& factor, std::int64_t at) {
    return take(factor, at, places);
  });
}

Result<SourcePtr> low_rank_rows(const LowRank& pair,
                                Result<SourcePtr> (*transform)(const SourcePtr&, std::int64_t,
                                                               std::int64_t),
                                std::int64_t first, std::int64_t second) {
  if (pair.shape().size() != 2) return no_pair("move the rows of", pair);
  MODELD_ASSIGN(SourcePtr b, transform(pair.b(), first, second));
  return low_rank(pair.a(), std::move(b));
}

Result<SourcePtr> low_rank_multiply(const LowRank& pair, float factor) {
  return low_rank(pair.a(), multiply(pair.b(), factor));
}

Result<SourcePtr> low_rank_multiply_rows(const LowRank& pair, std::vector<float> factors,
                                         std::uint64_t repeat) {
  const std::uint64_t columns = pair.shape().back();
  if (columns == 0 || repeat % columns != 0) return no_pair("multiply the columns of", pair);
  return low_rank(pair.a(),
                  multiply_each(pair.b(), std::move(factors), repeat / columns * rank_of(pair)));
}

Result<SourcePtr> stack_parts(std::span<const SourcePtr> parts) {
  if (parts.empty() || as_low_rank(*parts[0]) == nullptr) return stack(parts);
  std::vector<SourcePtr> a;
  std::vector<SourcePtr> b;
  for (const SourcePtr& part : parts) {
    const LowRank* pair = as_low_rank(*part);
    if (pair == nullptr)
      return fail(Errc::malformed, "only some of the parts are low-rank changes");
    a.push_back(pair->a());
    b.push_back(pair->b());
  }
  MODELD_ASSIGN(SourcePtr right, stack(a));
  MODELD_ASSIGN(SourcePtr left, stack(b));
  return low_rank(std::move(right), std::move(left));
}

Result<SourcePtr> concat_parts(std::span<const SourcePtr> parts, std::int64_t axis) {
  if (parts.empty() || as_low_rank(*parts[0]) == nullptr) return concat(parts, axis);
  const LowRank& first = *as_low_rank(*parts[0]);
  MODELD_ASSIGN(const std::size_t place, axis_of(first, axis));
  std::vector<SourcePtr> a;
  std::vector<SourcePtr> b;
  for (const SourcePtr& part : parts) {
    const LowRank* pair = as_low_rank(*part);
    if (pair == nullptr)
      return fail(Errc::malformed, "only some of the parts are low-rank changes");
    a.push_back(pair->a());
    b.push_back(pair->b());
  }
  if (place + 2 > first.shape().size()) return no_pair("join the columns of", first);
  MODELD_ASSIGN(SourcePtr left, concat(b, axis));
  if (place + 2 < first.shape().size()) {
    MODELD_ASSIGN(SourcePtr right, concat(a, axis));
    return low_rank(std::move(right), std::move(left));
  }
  for (const SourcePtr& other : a) {
    MODELD_ASSIGN(const bool same, equal_tensors(*a[0], *other));
    if (!same) return no_pair("join rows of different factors A of", first);
  }
  return low_rank(a[0], std::move(left));
}

} // namespace modeld::quantize
