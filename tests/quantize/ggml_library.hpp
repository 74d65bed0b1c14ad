// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/tensor_type.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace modeld::test {

/// The reference's own library (libggml-base of its release build), opened at run time. It is never
/// part of modeld: tests/interop/get_reference.sh fetches it into the build folder.
class GgmlLibrary {
public:
  /// MODELD_GGML_LIBRARY, or where the script puts it; null where it is not there.
  static const GgmlLibrary* find();

  /// ggml_quantize_chunk from the first row.
  void quantize(TensorType type, const float* in, std::uint64_t rows, std::uint64_t row_elements,
                const float* importance, void* out) const;
  /// The type's to_float, by its exported name; false where there is none.
  bool dequantize(TensorType type, const void* in, float* out, std::uint64_t elements) const;

private:
  explicit GgmlLibrary(void* handle);
  void* handle_;
  std::size_t (*quantize_chunk_)(int, const float*, void*, std::int64_t, std::int64_t, std::int64_t,
                                 const float*);
};

} // namespace modeld::test
