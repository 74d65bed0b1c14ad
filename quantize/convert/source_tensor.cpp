// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/source_tensor.hpp"

#include "quantize/reference/half.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace modeld::quantize {
namespace {

constexpr std::array k_elements{
    ElementTypeInfo{ElementType::f32, "F32", 4},
    ElementTypeInfo{ElementType::f16, "F16", 2},
    ElementTypeInfo{ElementType::bf16, "BF16", 2},
    ElementTypeInfo{ElementType::f64, "F64", 8},
    ElementTypeInfo{ElementType::i64, "I64", 8},
    ElementTypeInfo{ElementType::i32, "I32", 4},
    ElementTypeInfo{ElementType::i16, "I16", 2},
    ElementTypeInfo{ElementType::i8, "I8", 1},
    ElementTypeInfo{ElementType::u8, "U8", 1},
    ElementTypeInfo{ElementType::boolean, "BOOL", 1},
    ElementTypeInfo{ElementType::f8_e4m3, "F8_E4M3", 1},
    ElementTypeInfo{ElementType::f8_e5m2, "F8_E5M2", 1},
    ElementTypeInfo{ElementType::f8_e8m0, "F8_E8M0", 1},
};

constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

/// 4 exponent bits (bias 7), 3 of mantissa, no infinity; all ones is NaN.
constexpr float f8_e4m3(std::uint8_t byte) {
  const std::uint32_t exponent = (byte >> 3) & 15U;
  const std::uint32_t mantissa = byte & 7U;
  const float sign = (byte & 0x80U) != 0 ? -1.0F : 1.0F;
  if (exponent == 15 && mantissa == 7) return sign * k_nan;
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-9F;
  return sign * std::bit_cast<float>(((exponent + 120U) << 23) | (mantissa << 20));
}

/// 5 exponent bits (bias 15), 2 of mantissa: the upper half of a binary16.
float f8_e5m2(std::uint8_t byte) {
  return reference::f16_to_f32(static_cast<std::uint16_t>(byte << 8));
}

/// A power of two (bias 127); all ones is NaN.
constexpr float f8_e8m0(std::uint8_t byte) {
  if (byte == 255) return k_nan;
  if (byte == 0) return 0x1p-127F;
  return std::bit_cast<float>(std::uint32_t{byte} << 23);
}

template <float (*F)(std::uint8_t)>
std::array<float, 256> table_of() {
  std::array<float, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = F(static_cast<std::uint8_t>(i));
  }
  return table;
}

void through(const std::array<float, 256>& table, const std::byte* in, std::uint64_t count,
             float* out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    out[i] = table[std::to_integer<std::size_t>(in[i])];
  }
}

template <class T>
void cast(const std::byte* in, std::uint64_t count, float* out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T value{};
    std::memcpy(&value, in + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

template <float (*F)(std::uint16_t)>
void halves(const std::byte* in, std::uint64_t count, float* out) {
  for (std::uint64_t i = 0; i < count; ++i) {
    out[i] = F(reference::load_u16(in + i * 2));
  }
}

class MemoryTensor final : public SourceTensor {
public:
  MemoryTensor(ElementType type, Shape shape, const std::byte* data)
      : SourceTensor(type, std::move(shape)), data_(data) {}
  MemoryTensor(ElementType type, Shape shape, std::vector<std::byte> bytes)
      : SourceTensor(type, std::move(shape)), owned_(std::move(bytes)), data_(owned_.data()) {}

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    const std::uint64_t width = info(type()).bytes;
    if (count > 0) std::memcpy(out, data_ + first * width, count * width);
    return {};
  }
  const std::byte* contiguous() const override { return data_; }

private:
  std::vector<std::byte> owned_;
  const std::byte* data_;
};

class PackedTensor final : public SourceTensor {
public:
  PackedTensor(TensorType packed, SourcePtr bytes)
      : SourceTensor(ElementType::u8, bytes->shape()), packed_(packed), bytes_(std::move(bytes)) {}
  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    return bytes_->read(first, count, out);
  }
  std::optional<TensorType> packed() const override { return packed_; }

private:
  TensorType packed_;
  SourcePtr bytes_;
};

} // namespace

const ElementTypeInfo& info(ElementType type) {
  return k_elements[static_cast<std::size_t>(type)];
}

std::uint64_t element_count(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : shape) {
    count *= n;
  }
  return count;
}

SourceTensor::SourceTensor(ElementType type, Shape shape)
    : type_(type), shape_(std::move(shape)), elements_(element_count(shape_)) {}

void to_f32(ElementType type, const std::byte* in, std::uint64_t count, float* out) {
  static const auto e4m3 = table_of<f8_e4m3>();
  static const auto e5m2 = table_of<f8_e5m2>();
  static const auto e8m0 = table_of<f8_e8m0>();
  switch (type) {
  case ElementType::f32:
    if (count > 0) std::memcpy(out, in, count * sizeof(float));
    return;
  case ElementType::f16:
    return halves<reference::f16_to_f32>(in, count, out);
  case ElementType::bf16:
    return halves<reference::bf16_to_f32>(in, count, out);
  case ElementType::f64:
    return cast<double>(in, count, out);
  case ElementType::i64:
    return cast<std::int64_t>(in, count, out);
  case ElementType::i32:
    return cast<std::int32_t>(in, count, out);
  case ElementType::i16:
    return cast<std::int16_t>(in, count, out);
  case ElementType::i8:
    return cast<std::int8_t>(in, count, out);
  case ElementType::u8:
    return cast<std::uint8_t>(in, count, out);
  case ElementType::boolean:
    for (std::uint64_t i = 0; i < count; ++i) {
      out[i] = in[i] == std::byte{0} ? 0.0F : 1.0F;
    }
    return;
  case ElementType::f8_e4m3:
    return through(e4m3, in, count, out);
  case ElementType::f8_e5m2:
    return through(e5m2, in, count, out);
  case ElementType::f8_e8m0:
    return through(e8m0, in, count, out);
  }
}

Result<void> read_f32(const SourceTensor& tensor, std::uint64_t first, std::uint64_t count,
                      float* out) {
  if (tensor.type() == ElementType::f32) {
    return tensor.read(first, count, reinterpret_cast<std::byte*>(out));
  }
  const std::uint64_t width = info(tensor.type()).bytes;
  if (const std::byte* data = tensor.contiguous()) {
    to_f32(tensor.type(), data + first * width, count, out);
    return {};
  }
  std::array<std::byte, 16384> buffer;
  const std::uint64_t step = buffer.size() / width;
  for (std::uint64_t done = 0; done < count; done += step) {
    const std::uint64_t some = std::min(step, count - done);
    MODELD_TRY(tensor.read(first + done, some, buffer.data()));
    to_f32(tensor.type(), buffer.data(), some, out + done);
  }
  return {};
}

Result<std::vector<std::int64_t>> read_integers(const SourceTensor& tensor) {
  const std::uint64_t width = info(tensor.type()).bytes;
  std::vector<std::byte> bytes(tensor.elements() * width);
  MODELD_TRY(tensor.read(0, tensor.elements(), bytes.data()));
  std::vector<std::int64_t> out(tensor.elements());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * width;
    const auto take = [at](auto value) {
      std::memcpy(&value, at, sizeof value);
      return static_cast<std::int64_t>(value);
    };
    switch (tensor.type()) {
    case ElementType::i64:
      out[i] = take(std::int64_t{});
      break;
    case ElementType::i32:
      out[i] = take(std::int32_t{});
      break;
    case ElementType::i16:
      out[i] = take(std::int16_t{});
      break;
    case ElementType::i8:
      out[i] = take(std::int8_t{});
      break;
    case ElementType::u8:
    case ElementType::boolean:
      out[i] = take(std::uint8_t{});
      break;
    default:
      return fail(Errc::unsupported, fmt::format("reading whole numbers: the tensor holds {}",
                                                 info(tensor.type()).name));
    }
  }
  return out;
}

Result<bool> equal_tensors(const SourceTensor& a, const SourceTensor& b) {
  if (a.shape() != b.shape() || a.type() != b.type()) return false;
  constexpr std::uint64_t k_some = 65536;
  const std::uint64_t width = info(a.type()).bytes;
  std::vector<std::byte> left(k_some * width);
  std::vector<std::byte> right(k_some * width);
  for (std::uint64_t done = 0; done < a.elements(); done += k_some) {
    const std::uint64_t count = std::min(k_some, a.elements() - done);
    MODELD_TRY(a.read(done, count, left.data()));
    MODELD_TRY(b.read(done, count, right.data()));
    const auto end = left.begin() + static_cast<std::ptrdiff_t>(count * width);
    if (!std::equal(left.begin(), end, right.begin())) return false;
  }
  return true;
}

SourcePtr memory_tensor(ElementType type, Shape shape, const std::byte* data) {
  return std::make_shared<MemoryTensor>(type, std::move(shape), data);
}

SourcePtr owned_bytes(ElementType type, Shape shape, std::vector<std::byte> bytes) {
  return std::make_shared<MemoryTensor>(type, std::move(shape), std::move(bytes));
}

SourcePtr owned_tensor(Shape shape, std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return owned_bytes(ElementType::f32, std::move(shape), std::move(bytes));
}

SourcePtr packed_tensor(TensorType type, SourcePtr bytes) {
  return std::make_shared<PackedTensor>(type, std::move(bytes));
}

} // namespace modeld::quantize
