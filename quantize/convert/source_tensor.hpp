// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "schema/tensor_type.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// Tensors on their way from a checkpoint to GGUF: a type, a shape, and elements that are read on
// demand. Transforms wrap one another, so a chain costs no memory, and a row of the result can be
// made without the rest of the tensor.

namespace modeld::quantize {

/// How an element is stored in the source.
enum class ElementType : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
};

struct ElementTypeInfo {
  ElementType type;
  std::string_view name; ///< as safetensors spells it
  std::uint32_t bytes;
};
const ElementTypeInfo& info(ElementType type);

/// Dimensions, slowest first, as the checkpoint has them. Empty: one element.
using Shape = std::vector<std::uint64_t>;
std::uint64_t element_count(const Shape& shape);

/// Immutable; read() may be called from any number of threads at once. The bytes behind it (a
/// FileSet's) must live as long.
class SourceTensor {
public:
  SourceTensor(ElementType type, Shape shape);
  SourceTensor(const SourceTensor&) = delete;
  SourceTensor& operator=(const SourceTensor&) = delete;
  virtual ~SourceTensor() = default;

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  std::uint64_t elements() const { return elements_; }

  /// Elements [first, first + count) in row-major order, in the tensor's own type; `out` has
  /// count * info(type()).bytes bytes.
  virtual Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const = 0;
  /// Where all elements lie in memory, in order; null where they have to be made.
  virtual const std::byte* contiguous() const { return nullptr; }

  /// Blocks of a GGUF type: the elements are the bytes of whole rows, never converted.
  virtual std::optional<TensorType> packed() const { return std::nullopt; }

private:
  ElementType type_;
  Shape shape_;
  std::uint64_t elements_;
};
using SourcePtr = std::shared_ptr<const SourceTensor>;

/// Elements as single precision, each converted as the reference's framework does.
Result<void> read_f32(const SourceTensor& tensor, std::uint64_t first, std::uint64_t count,
                      float* out);
void to_f32(ElementType type, const std::byte* in, std::uint64_t count, float* out);
/// Elements as whole numbers; unsupported for floating-point types.
Result<std::vector<std::int64_t>> read_integers(const SourceTensor& tensor);
/// Whether two tensors hold the same bytes.
Result<bool> equal_tensors(const SourceTensor& a, const SourceTensor& b);

/// Bytes that lie in memory already; they must outlive the tensor.
SourcePtr memory_tensor(ElementType type, Shape shape, const std::byte* data);
/// Values that the converter makes.
SourcePtr owned_tensor(Shape shape, std::vector<float> values);
SourcePtr owned_bytes(ElementType type, Shape shape, std::vector<std::byte> bytes);
/// Bytes of GGUF blocks: `shape` counts bytes in its last dimension.
SourcePtr packed_tensor(TensorType type, SourcePtr bytes);

} // namespace modeld::quantize
