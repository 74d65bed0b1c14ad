// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/transform_value.hpp"

#include "quantize/convert/torch_math.hpp"
#include "quantize/reference/half.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

namespace modeld::quantize {
namespace {

constexpr std::uint64_t k_chunk = 2048;

/// Computes single precision out of another tensor, rounds to F16 where the result is F16.
template <class F>
class Computed final : public SourceTensor {
public:
  /// `function` is called as function(first element's number, values, count) and changes values.
  Computed(ElementType type, SourcePtr from, F function)
      : SourceTensor(type, from->shape()), from_(std::move(from)), function_(std::move(function)) {}

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    if (type() == ElementType::f32) {
      auto* values = reinterpret_cast<float*>(out);
      MODELD_TRY(read_f32(*from_, first, count, values));
      function_(first, values, count);
      return {};
    }
    std::array<float, k_chunk> values;
    for (std::uint64_t done = 0; done < count; done += k_chunk) {
      const std::uint64_t some = std::min(k_chunk, count - done);
      MODELD_TRY(read_f32(*from_, first + done, some, values.data()));
      function_(first + done, values.data(), some);
      for (std::uint64_t i = 0; i < some; ++i) {
        reference::store_u16(out + (done + i) * 2, reference::f32_to_f16(values[i]));
      }
    }
    return {};
  }

private:
  SourcePtr from_;
  F function_;
};

template <class F>
SourcePtr computed(ElementType type, const SourcePtr& from, F function) {
  return std::make_shared<Computed<F>>(type, from, std::move(function));
}

ElementType computing_type(const SourceTensor& tensor) {
  return tensor.type() == ElementType::f16 ? ElementType::f16 : ElementType::f32;
}

} // namespace

SourcePtr single_precision(const SourcePtr& tensor) {
  return tensor->type() == ElementType::f16 ? tensor : as_f32(tensor);
}

SourcePtr as_f32(const SourcePtr& tensor) {
  if (tensor->type() == ElementType::f32) return tensor;
  return computed(ElementType::f32, tensor, [](std::uint64_t, float*, std::uint64_t) {});
}

SourcePtr as_f16(const SourcePtr& tensor) {
  if (tensor->type() == ElementType::f16) return tensor;
  return computed(ElementType::f16, tensor, [](std::uint64_t, float*, std::uint64_t) {});
}

SourcePtr each_element(const SourcePtr& tensor, ElementFunction function, float parameter) {
  return computed(computing_type(*tensor), tensor,
                  [function, parameter](std::uint64_t, float* values, std::uint64_t count) {
                    for (std::uint64_t i = 0; i < count; ++i) {
                      values[i] = function(values[i], parameter);
                    }
                  });
}

SourcePtr add(const SourcePtr& tensor, float value) {
  return each_element(
      tensor, [](float x, float v) { return x + v; }, value);
}

SourcePtr multiply(const SourcePtr& tensor, float factor) {
  return each_element(
      tensor, [](float x, float v) { return x * v; }, factor);
}

SourcePtr divide(const SourcePtr& tensor, float divisor) {
  return each_element(
      tensor, [](float x, float v) { return x / v; }, divisor);
}

SourcePtr negative_exp(const SourcePtr& tensor) {
  return each_element(
      tensor, [](float x, float) { return -torch_exp(x); }, 0);
}

SourcePtr negate(const SourcePtr& tensor) {
  return each_element(
      tensor, [](float x, float) { return -x; }, 0);
}

namespace {

/// Computes with something that only the whole tensor tells. It is learnt at the first read, so
/// that a plan reads no weights.
template <class T, class Learn, class Apply>
class LearntFirst final : public SourceTensor {
public:
  LearntFirst(ElementType type, SourcePtr from, Learn learn, Apply apply)
      : SourceTensor(type, from->shape()), from_(std::move(from)), learn_(std::move(learn)),
        apply_(std::move(apply)) {}

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    std::call_once(once_, [&] { learnt_ = learn_(*from_); });
    if (!learnt_) return tl::unexpected(learnt_.error());
    const auto compute = [&](std::uint64_t at, float* values, std::uint64_t some) {
      apply_(*learnt_, at, values, some);
    };
    return Computed(type(), from_, compute).read(first, count, out);
  }

private:
  SourcePtr from_;
  Learn learn_;
  Apply apply_;
  mutable std::once_flag once_;
  mutable Result<T> learnt_;
};

template <class T, class Learn, class Apply>
SourcePtr learnt_first(ElementType type, const SourcePtr& from, Learn learn, Apply apply) {
  return std::make_shared<LearntFirst<T, Learn, Apply>>(type, from, std::move(learn),
                                                        std::move(apply));
}

} // namespace

Result<SourcePtr> divide_by_column_norms(const SourcePtr& tensor, float epsilon) {
  if (tensor->shape().size() != 2) {
    return fail(Errc::unsupported, "cannot divide by column norms: the tensor is no matrix");
  }
  using Norms = std::vector<float>;
  const auto learn = [epsilon](const SourceTensor& from) -> Result<Norms> {
    const std::uint64_t columns = from.shape()[1];
    Norms row(columns);
    Norms norms(columns);
    for (std::uint64_t r = 0; r < from.shape()[0]; ++r) {
      MODELD_TRY(read_f32(from, r * columns, columns, row.data()));
      for (std::uint64_t c = 0; c < columns; ++c) {
        norms[c] += row[c] * row[c];
      }
    }
    for (float& norm : norms) {
      norm = std::sqrt(norm) + epsilon;
    }
    return norms;
  };
  const auto apply = [](const Norms& norms, std::uint64_t first, float* values,
                        std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      values[i] /= norms[(first + i) % norms.size()];
    }
  };
  return learnt_first<Norms>(ElementType::f32, tensor, learn, apply);
}

SourcePtr ternary(const SourcePtr& tensor) {
  const auto learn = [](const SourceTensor& from) -> Result<float> {
    constexpr float k_least = 1e-5F;
    MODELD_ASSIGN(const float mean, torch_mean_magnitude(from));
    return 1.0F / std::max(mean, k_least);
  };
  const auto apply = [](float inverse, std::uint64_t, float* values, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      values[i] = std::clamp(std::nearbyint(values[i] * inverse), -1.0F, 1.0F) / inverse;
    }
  };
  return learnt_first<float>(computing_type(*tensor), tensor, learn, apply);
}

SourcePtr multiply_each(const SourcePtr& tensor, std::vector<float> factors, std::uint64_t repeat) {
  return computed(computing_type(*tensor), tensor,
                  [factors = std::move(factors), repeat](std::uint64_t first, float* values,
                                                         std::uint64_t count) {
                    for (std::uint64_t i = 0; i < count; ++i) {
                      values[i] *= factors[(first + i) / repeat % factors.size()];
                    }
                  });
}

} // namespace modeld::quantize
