// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/tensor_type.hpp"

#include <cstddef>
#include <cstdint>

namespace modeld::quantize {

/// Whether quantizing to a type looks at importance weights.
enum class ImportanceUse {
  ignored,  ///< the same bytes with and without
  optional, ///< another search where they are given
  required, ///< there is no definition without them
};

/// How one tensor type is read and written, in rows of whole blocks. A row of `row_elements` floats
/// becomes tensor_bytes(type, row_elements) bytes; rows follow each other without padding. The
/// functions are pure: any thread, no shared state, the same bytes for a row whatever rows are
/// done with it. Nothing has to be aligned beyond `float`; blocks may start at any address.
struct RowCodec {
  /// `importance`: row_elements finite weights >= 0, the same for every row, or null. Not null
  /// where `importance_use` is required.
  using Quantize = void (*)(const float* in, std::uint64_t rows, std::uint64_t row_elements,
                            const float* importance, std::byte* out);
  using Dequantize = void (*)(const std::byte* in, std::uint64_t rows, std::uint64_t row_elements,
                              float* out);

  TensorType type = TensorType::f32;
  ImportanceUse importance_use = ImportanceUse::ignored;
  Quantize quantize = nullptr;     ///< null: the type is never written from floats (I8, Q8_K, ...)
  Dequantize dequantize = nullptr; ///< null: the type is not weights (I8, Q8_K, ...)
};

/// The definition: plain scalar code (quantize/reference/), equal bit for bit to the reference's
/// ggml_quantize_chunk and dequantize_row_*.
const RowCodec& scalar_codec(TensorType type);

/// The fastest for the kernel target in use (kernels/target.hpp), which gives the same bytes; the
/// scalar one where the target has no kernel for the type.
const RowCodec& codec(TensorType type);

} // namespace modeld::quantize
