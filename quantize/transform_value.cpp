// SPDX-License-Identifier: Apache-2.0
#include "quantize/transform_value.hpp"

#include "quantize/reference/half.hpp"

#include <algorithm>
#include <array>
#include <cmath>
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
  // In double precision and rounded once: the nearest value, so within 1 ulp of any routine.
  return each_element(
      tensor, [](float x, float) { return static_cast<float>(-std::exp(static_cast<double>(x))); },
      0);
}

SourcePtr negate(const SourcePtr& tensor) {
  return each_element(
      tensor, [](float x, float) { return -x; }, 0);
}

SourcePtr multiply_each(const SourcePtr& tensor, std::vector<float> factors, std::uint64_t repeat) {
  return computed(ElementType::f32, tensor,
                  [factors = std::move(factors), repeat](std::uint64_t first, float* values,
                                                         std::uint64_t count) {
                    for (std::uint64_t i = 0; i < count; ++i) {
                      values[i] *= factors[(first + i) / repeat % factors.size()];
                    }
                  });
}

} // namespace modeld::quantize
