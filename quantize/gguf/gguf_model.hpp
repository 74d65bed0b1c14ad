// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "schema/tensor_type.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What a GGUF file is going to be, before a byte of it exists. Conversion makes a GgufModel out of
// a checkpoint, quantization makes one out of another, the reader makes one out of a file, and the
// writer turns one into bytes. So "convert, then quantize" needs no file in between, and the plan
// of every output is known (names, types, sizes) before a weight is read.

namespace modeld::quantize {

/// A metadata array. Elements of one type, as GGUF has it.
using GgufArray =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                 std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                 std::vector<float>, std::vector<bool>, std::vector<std::string>,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;

/// A metadata value; the alternative is the type on disk.
using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                               std::uint32_t, std::int32_t, float, bool, std::string, GgufArray,
                               std::uint64_t, std::int64_t, double>;

struct GgufKv {
  std::string key;
  GgufValue value;
};

/// Where a tensor's bytes come from, row by row. Immutable; read_rows may be called from any number
/// of threads at once, for any rows in any order, and gives the same bytes each time.
class TensorSource {
public:
  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  /// Writes rows [first, first + count) in the tensor's own type. `out` is exactly count rows long.
  virtual Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                                 std::span<std::byte> out) const = 0;
};

struct GgufTensor {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::uint64_t> ne; ///< elements, fastest dimension first; 1 to 4 of them
  std::shared_ptr<const TensorSource> source;

  std::uint64_t row_elements() const; ///< ne[0]
  std::uint64_t rows() const;         ///< product of the other dimensions
  std::uint64_t row_bytes() const;    ///< checked when the model was made: whole blocks
  std::uint64_t bytes() const;
};

struct GgufModel {
  std::vector<GgufKv> kv; ///< in the order of the file; a key stands once
  std::vector<GgufTensor> tensors;
  std::uint32_t alignment = 32;
  bool big_endian = false;
  /// The file ends after the metadata, without the padding that tensor data would need. Only where
  /// there are no tensors.
  bool vocabulary_only = false;

  const GgufValue* find(std::string_view key) const;
  /// Writes over the value of a key that is there, in place; else appends.
  void set(std::string_view key, GgufValue value);
  /// Whether there was such a key.
  bool erase(std::string_view key);
};

} // namespace modeld::quantize
