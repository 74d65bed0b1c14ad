// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/transform_view.hpp"

#include "quantize/convert/transform_value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace modeld::quantize {
namespace {

tl::unexpected<Error> no_fit(std::string_view what, const SourceTensor& tensor) {
  return fail(
      Error{Errc::unsupported,
            fmt::format("cannot {} a tensor of shape [{}]", what, fmt::join(tensor.shape(), ", ")),
            {},
            {},
            0}
          .with_detail("misfit", "shape"));
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size());
  std::uint64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

/// Blocks stay blocks while their rows stay whole.
std::optional<TensorType> packed_rows(const SourceTensor& from, const Shape& shape) {
  if (!from.packed() || shape.empty() || from.shape().empty()) return std::nullopt;
  return shape.back() == from.shape().back() ? from.packed() : std::nullopt;
}

/// Elements of another tensor at an offset, a stride for each dimension.
class StridedView final : public SourceTensor {
public:
  StridedView(SourcePtr from, Shape shape, Shape strides, std::uint64_t offset)
      : SourceTensor(from->type(), shape), from_(std::move(from)), offset_(offset),
        packed_(packed_rows(*from_, shape)) {
    // Dimensions that follow each other without a gap are read as one.
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      if (!dims_.empty() && dims_.back().stride == strides[i] * shape[i]) {
        dims_.back().size *= shape[i];
        dims_.back().stride = strides[i];
      } else {
        dims_.push_back({shape[i], strides[i]});
      }
    }
    if (dims_.empty() || dims_.back().stride != 1) dims_.push_back({1, 1});
    run_ = dims_.back().size;
    dims_.pop_back();
  }

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    const std::uint64_t width = info(type()).bytes;
    while (count > 0) {
      const std::uint64_t inside = first % run_;
      const std::uint64_t some = std::min(count, run_ - inside);
      MODELD_TRY(from_->read(place(first / run_) + inside, some, out));
      first += some;
      count -= some;
      out += some * width;
    }
    return {};
  }

  const std::byte* contiguous() const override {
    const std::byte* data = dims_.empty() ? from_->contiguous() : nullptr;
    return data == nullptr ? nullptr : data + offset_ * info(type()).bytes;
  }
  std::optional<TensorType> packed() const override { return packed_; }

private:
  struct Dim {
    std::uint64_t size;
    std::uint64_t stride;
  };

  /// Where run number `run` starts in the other tensor.
  std::uint64_t place(std::uint64_t run) const {
    std::uint64_t at = offset_;
    for (std::size_t i = dims_.size(); i-- > 0;) {
      at += run % dims_[i].size * dims_[i].stride;
      run /= dims_[i].size;
    }
    return at;
  }

  SourcePtr from_;
  std::uint64_t offset_;
  std::optional<TensorType> packed_;
  std::vector<Dim> dims_; ///< without the innermost run
  std::uint64_t run_ = 1; ///< elements that lie together
};

/// Some places along one dimension.
class TakenView final : public SourceTensor {
public:
  TakenView(SourcePtr from, Shape shape, std::size_t axis, std::vector<std::uint64_t> places)
      : SourceTensor(from->type(), shape), from_(std::move(from)), places_(std::move(places)),
        packed_(packed_rows(*from_, shape)) {
    for (std::size_t i = axis + 1; i < shape.size(); ++i) {
      inner_ *= shape[i];
    }
    old_size_ = from_->shape()[axis];
  }

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    const std::uint64_t width = info(type()).bytes;
    while (count > 0) {
      const std::uint64_t inside = first % inner_;
      const std::uint64_t row = first / inner_;
      const std::uint64_t some = std::min(count, inner_ - inside);
      const std::uint64_t old_row =
          row / places_.size() * old_size_ + places_[row % places_.size()];
      MODELD_TRY(from_->read(old_row * inner_ + inside, some, out));
      first += some;
      count -= some;
      out += some * width;
    }
    return {};
  }

  std::optional<TensorType> packed() const override { return packed_; }

private:
  SourcePtr from_;
  std::vector<std::uint64_t> places_;
  std::optional<TensorType> packed_;
  std::uint64_t inner_ = 1;
  std::uint64_t old_size_ = 1;
};

/// Parts one after the other along a dimension: for every place of the dimensions before it, each
/// part gives a run.
class ConcatView final : public SourceTensor {
public:
  ConcatView(std::vector<SourcePtr> parts, Shape shape, std::size_t axis)
      : SourceTensor(parts[0]->type(), shape), parts_(std::move(parts)),
        packed_(packed_rows(*parts_[0], shape)) {
    std::uint64_t inner = 1;
    for (std::size_t i = axis + 1; i < shape.size(); ++i) {
      inner *= shape[i];
    }
    ends_.reserve(parts_.size());
    for (const SourcePtr& part : parts_) {
      row_ += part->shape()[axis] * inner;
      ends_.push_back(row_);
    }
  }

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    const std::uint64_t width = info(type()).bytes;
    while (count > 0) {
      const std::uint64_t row = first / row_;
      const std::uint64_t inside = first % row_;
      const auto end = std::upper_bound(ends_.begin(), ends_.end(), inside);
      const auto part = static_cast<std::size_t>(end - ends_.begin());
      const std::uint64_t begin = part == 0 ? 0 : ends_[part - 1];
      const std::uint64_t some = std::min(count, *end - inside);
      MODELD_TRY(parts_[part]->read(row * (*end - begin) + inside - begin, some, out));
      first += some;
      count -= some;
      out += some * width;
    }
    return {};
  }

  std::optional<TensorType> packed() const override { return packed_; }

private:
  std::vector<SourcePtr> parts_;
  std::optional<TensorType> packed_;
  std::vector<std::uint64_t> ends_; ///< of each part within a row
  std::uint64_t row_ = 0;
};

SourcePtr strided(const SourcePtr& from, Shape shape, Shape strides, std::uint64_t offset = 0) {
  return std::make_shared<StridedView>(from, std::move(shape), std::move(strides), offset);
}

/// The same tensor under another shape of as many elements.
SourcePtr relabelled(const SourcePtr& from, Shape shape) {
  Shape strides = row_major(shape);
  return strided(from, std::move(shape), std::move(strides));
}

} // namespace

Result<std::size_t> axis_of(const SourceTensor& tensor, std::int64_t axis, std::size_t extra) {
  const auto rank = static_cast<std::int64_t>(tensor.shape().size() + extra);
  const std::int64_t at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return no_fit(fmt::format("find dimension {} of", axis), tensor);
  return static_cast<std::size_t>(at);
}

Result<SourcePtr> reshape(const SourcePtr& tensor, std::vector<std::int64_t> shape) {
  std::uint64_t known = 1;
  for (const std::int64_t n : shape) {
    if (n >= 0 && __builtin_mul_overflow(known, static_cast<std::uint64_t>(n), &known)) known = 0;
  }
  Shape out;
  bool guessed = false;
  for (const std::int64_t n : shape) {
    if (n >= 0) {
      out.push_back(static_cast<std::uint64_t>(n));
    } else if (!guessed && known != 0) {
      out.push_back(tensor->elements() / known);
      guessed = true;
    }
  }
  if (out.size() != shape.size() || element_count(out) != tensor->elements()) {
    return no_fit(fmt::format("give shape [{}] to", fmt::join(shape, ", ")), *tensor);
  }
  return relabelled(tensor, std::move(out));
}

Result<SourcePtr> permute(const SourcePtr& tensor, const std::vector<std::int64_t>& axes) {
  const Shape old_strides = row_major(tensor->shape());
  Shape shape;
  Shape strides;
  std::vector<bool> used(tensor->shape().size());
  for (const std::int64_t axis : axes) {
    MODELD_ASSIGN(const std::size_t at, axis_of(*tensor, axis));
    if (used[at]) break;
    used[at] = true;
    shape.push_back(tensor->shape()[at]);
    strides.push_back(old_strides[at]);
  }
  if (shape.size() != used.size()) {
    return no_fit(fmt::format("order as [{}] the dimensions of", fmt::join(axes, ", ")), *tensor);
  }
  return strided(tensor, std::move(shape), std::move(strides));
}

Result<SourcePtr> transpose(const SourcePtr& tensor, std::int64_t a, std::int64_t b) {
  MODELD_ASSIGN(const std::size_t first, axis_of(*tensor, a));
  MODELD_ASSIGN(const std::size_t second, axis_of(*tensor, b));
  std::vector<std::int64_t> axes(tensor->shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[first], axes[second]);
  return permute(tensor, axes);
}

Result<SourcePtr> slice(const SourcePtr& tensor, std::int64_t axis, std::int64_t begin,
                        std::int64_t end) {
  MODELD_ASSIGN(const std::size_t at, axis_of(*tensor, axis));
  const auto size = static_cast<std::int64_t>(tensor->shape()[at]);
  const std::int64_t from = begin < 0 ? begin + size : begin;
  const std::int64_t to = end < 0 ? end + size : end;
  if (from < 0 || to > size || from > to) {
    return no_fit(fmt::format("cut [{}, {}) of dimension {} out of", begin, end, axis), *tensor);
  }
  Shape shape = tensor->shape();
  Shape strides = row_major(shape);
  shape[at] = static_cast<std::uint64_t>(to - from);
  const std::uint64_t offset = strides[at] * static_cast<std::uint64_t>(from);
  return strided(tensor, std::move(shape), std::move(strides), offset);
}

Result<SourcePtr> take(const SourcePtr& tensor, std::int64_t axis,
                       std::vector<std::uint64_t> places) {
  MODELD_ASSIGN(const std::size_t at, axis_of(*tensor, axis));
  Shape shape = tensor->shape();
  for (const std::uint64_t place : places) {
    if (place >= shape[at]) return no_fit(fmt::format("take place {} of", place), *tensor);
  }
  shape[at] = places.size();
  return std::make_shared<TakenView>(tensor, std::move(shape), at, std::move(places));
}

Result<SourcePtr> squeeze(const SourcePtr& tensor) {
  Shape shape = tensor->shape();
  std::erase(shape, 1U);
  return relabelled(tensor, std::move(shape));
}

Result<SourcePtr> squeeze(const SourcePtr& tensor, std::int64_t axis) {
  MODELD_ASSIGN(const std::size_t at, axis_of(*tensor, axis));
  Shape shape = tensor->shape();
  if (shape[at] == 1) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  return relabelled(tensor, std::move(shape));
}

Result<SourcePtr> unsqueeze(const SourcePtr& tensor, std::int64_t axis) {
  MODELD_ASSIGN(const std::size_t at, axis_of(*tensor, axis, 1));
  Shape shape = tensor->shape();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
  return relabelled(tensor, std::move(shape));
}

Result<SourcePtr> concat(std::span<const SourcePtr> parts, std::int64_t axis) {
  if (parts.empty()) return fail(Errc::unsupported, "cannot join no tensors");
  MODELD_ASSIGN(const std::size_t at, axis_of(*parts[0], axis));
  const bool mixed = std::any_of(parts.begin(), parts.end(), [&](const SourcePtr& part) {
    return part->type() != parts[0]->type();
  });
  Shape shape = parts[0]->shape();
  shape[at] = 0;
  std::vector<SourcePtr> all;
  for (const SourcePtr& part : parts) {
    Shape other = part->shape();
    if (other.size() != shape.size()) return no_fit("join with the others", *part);
    const std::uint64_t size = std::exchange(other[at], 0);
    Shape rest = shape;
    rest[at] = 0;
    if (other != rest) return no_fit("join with the others", *part);
    shape[at] += size;
    all.push_back(mixed ? single_precision(part) : part);
  }
  return std::make_shared<ConcatView>(std::move(all), std::move(shape), at);
}

Result<SourcePtr> stack(std::span<const SourcePtr> parts) {
  std::vector<SourcePtr> raised;
  for (const SourcePtr& part : parts) {
    MODELD_ASSIGN(SourcePtr one, unsqueeze(part, 0));
    raised.push_back(std::move(one));
  }
  return concat(raised, 0);
}

Result<SourcePtr> rotary_halves(const SourcePtr& tensor, std::int64_t heads) {
  const Shape shape = tensor->shape();
  const auto parts = static_cast<std::uint64_t>(heads) * 2;
  // Heads of an odd size fit the configuration, and can be turned by nobody.
  if (!shape.empty() && heads > 0 && shape[0] % static_cast<std::uint64_t>(heads) == 0 &&
      shape[0] % parts != 0) {
    return fail(Errc::unsupported,
                fmt::format("cannot interleave the halves of {} heads in {} rows: heads have no "
                            "halves of equal size",
                            heads, shape[0]));
  }
  if (shape.empty() || heads <= 0 || shape[0] % parts != 0) {
    return no_fit(fmt::format("interleave the halves of {} heads in", heads), *tensor);
  }
  std::vector<std::int64_t> wide{heads, 2, static_cast<std::int64_t>(shape[0] / parts), -1};
  if (tensor->elements() == 0) return no_fit("interleave", *tensor);
  MODELD_ASSIGN(const SourcePtr split, reshape(tensor, wide));
  MODELD_ASSIGN(const SourcePtr swapped, transpose(split, 1, 2));
  return relabelled(swapped, shape);
}

Result<SourcePtr> regroup_rows(const SourcePtr& tensor, std::int64_t a, std::int64_t b) {
  const Shape shape = tensor->shape();
  if (shape.empty() || a <= 0 || b <= 0 || shape[0] % static_cast<std::uint64_t>(a * b) != 0 ||
      tensor->elements() == 0) {
    return no_fit(fmt::format("regroup {} x {} rows of", a, b), *tensor);
  }
  const auto rest = static_cast<std::int64_t>(shape[0]) / (a * b);
  MODELD_ASSIGN(const SourcePtr wide, reshape(tensor, {a, b, rest, -1}));
  MODELD_ASSIGN(const SourcePtr swapped, transpose(wide, 0, 1));
  return relabelled(swapped, shape);
}

Result<SourcePtr> ungroup_qkv(const SourcePtr& tensor, std::int64_t heads, std::int64_t kv_heads) {
  const Shape shape = tensor->shape();
  const std::int64_t per_group = kv_heads > 0 ? heads / kv_heads : 0;
  const std::int64_t rows = (per_group + 2) * kv_heads;
  if (shape.empty() || per_group <= 0 || shape[0] % static_cast<std::uint64_t>(rows) != 0 ||
      tensor->elements() == 0) {
    return no_fit(fmt::format("part queries of {} heads, {} of them for keys, in", heads, kv_heads),
                  *tensor);
  }
  const auto head = static_cast<std::int64_t>(shape[0]) / rows;
  MODELD_ASSIGN(const SourcePtr groups, reshape(tensor, {kv_heads, per_group + 2, head, -1}));
  std::vector<SourcePtr> parts;
  for (const auto& [begin, end] :
       {std::pair{std::int64_t{0}, per_group}, std::pair{per_group, per_group + 1},
        std::pair{per_group + 1, per_group + 2}}) {
    MODELD_ASSIGN(const SourcePtr part, slice(groups, 1, begin, end));
    MODELD_ASSIGN(SourcePtr flat, reshape(part, {kv_heads * (end - begin) * head, -1}));
    parts.push_back(std::move(flat));
  }
  MODELD_ASSIGN(const SourcePtr joined, concat(parts, 0));
  return relabelled(joined, shape);
}

} // namespace modeld::quantize
