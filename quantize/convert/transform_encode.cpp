// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/transform_encode.hpp"

#include "quantize/kernels/row_codec.hpp"
#include "quantize/reference/half.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace modeld::quantize {
namespace {

// Floats in flight for a thread, beyond a single row: fits the second-level cache.
constexpr std::uint64_t k_chunk = 16384;
/// The first single-precision magnitude that rounds to infinity in F16.
constexpr float k_f16_overflow = 65520.0F;

/// Whether source elements are the output's bytes already.
bool same_bytes(ElementType from, TensorType to) {
  return (from == ElementType::f32 && to == TensorType::f32) ||
         (from == ElementType::f16 && to == TensorType::f16);
}

/// Whole numbers are no trained weights: buffers of checkpoints, which the reference cuts off too.
bool floating(ElementType type) {
  return type == ElementType::f32 || type == ElementType::bf16 || type == ElementType::f64;
}

std::optional<float> overflowing(const float* values, std::uint64_t count) {
  float most = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const float magnitude = std::abs(values[i]);
    most = magnitude > most ? magnitude : most;
  }
  if (most < k_f16_overflow) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (std::abs(values[i]) >= k_f16_overflow && std::isfinite(values[i])) return values[i];
  }
  return std::nullopt;
}

class EncodedSource final : public TensorSource {
public:
  EncodedSource(SourcePtr from, TensorType type, std::uint64_t row, Overflow overflow)
      : from_(std::move(from)), type_(type), row_(row), overflow_(overflow) {}

  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    if (from_->packed()) {
      const std::uint64_t row_bytes = from_->shape().back();
      return from_->read(first * row_bytes, count * row_bytes, out.data());
    }
    const std::uint64_t elements = count * row_;
    if (same_bytes(from_->type(), type_)) {
      return from_->read(first * row_, elements, out.data());
    }
    if (from_->type() == ElementType::bf16 && type_ == TensorType::bf16) {
      MODELD_TRY(from_->read(first * row_, elements, out.data()));
      quiet_nans(out);
      return {};
    }
    return convert(first, count, out);
  }

private:
  /// BF16 to BF16 goes through single precision in the reference, which makes every NaN quiet.
  static void quiet_nans(std::span<std::byte> out) {
    for (std::size_t at = 0; at + 2 <= out.size(); at += 2) {
      const std::uint16_t bits = reference::load_u16(out.data() + at);
      const bool nan = (bits & 0x7FFFU) > 0x7F80U;
      reference::store_u16(out.data() + at, static_cast<std::uint16_t>(nan ? bits | 0x40U : bits));
    }
  }

  Result<void> convert(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
    const RowCodec& to = codec(type_);
    const std::uint64_t step =
        std::max<std::uint64_t>(1, k_chunk / std::max<std::uint64_t>(row_, 1));
    const std::uint64_t row_bytes = tensor_bytes(type_, row_).value_or(0);
    std::vector<float> values(std::min(step, count) * row_);
    for (std::uint64_t done = 0; done < count; done += step) {
      const std::uint64_t rows = std::min(step, count - done);
      MODELD_TRY(read_f32(*from_, (first + done) * row_, rows * row_, values.data()));
      if (type_ == TensorType::f16 && overflow_ == Overflow::refuse && floating(from_->type())) {
        if (const auto value = overflowing(values.data(), rows * row_)) {
          return fail(Errc::unsupported,
                      fmt::format("value {} does not fit F16, whose largest is 65504", *value),
                      "convert to bf16 or f32, or pass --force to write infinity there");
        }
      }
      to.quantize(values.data(), rows, row_, nullptr, out.data() + done * row_bytes);
    }
    return {};
  }

  SourcePtr from_;
  TensorType type_;
  std::uint64_t row_;
  Overflow overflow_;
};

} // namespace

Result<GgufTensor> encode_tensor(std::string name, SourcePtr source, TensorType type,
                                 Overflow overflow) {
  GgufTensor tensor;
  tensor.type = source->packed().value_or(type);
  tensor.ne.assign(source->shape().rbegin(), source->shape().rend());
  if (source->packed()) {
    const TensorTypeInfo& row = info(tensor.type);
    if (tensor.ne.empty() || tensor.ne[0] % row.bytes != 0) {
      return fail(Errc::unsupported,
                  fmt::format("writing tensor '{}': rows are no whole {} blocks", name, row.name));
    }
    tensor.ne[0] = tensor.ne[0] / row.bytes * row.block;
  }
  const std::uint64_t row = tensor.row_elements();
  tensor.source = std::make_shared<EncodedSource>(std::move(source), tensor.type, row, overflow);
  tensor.name = std::move(name);
  return tensor;
}

} // namespace modeld::quantize
